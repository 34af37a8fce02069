//! The Rust client of the lab (docs/reference/lab-protocol.md), on the crate lapin.
//!
//! It does what it is told and reports what it did; it never judges. First comes the control conversation,
//! then the roles, then messages. Header values go in JSON as lapin's own enumeration, `{"LongInt": 7}`;
//! manifest.json says which type of AMQP each of its names is.
//!
//! lapin hands a returned message out with the confirm that comes after it, so a return that a broker sends
//! after its confirm would stay hidden. Where messages may be returned the channel has no confirms, and the
//! synchronous call that ends every batch is the barrier.

use base64::{engine::general_purpose::STANDARD, Engine as _};
use futures_util::stream::{BoxStream, SelectAll, StreamExt};
use lapin::types::{AMQPValue, LongString, ShortString};
use lapin::{message::Delivery, options::*, uri::AMQPUri, BasicProperties, Channel, Connection, ErrorKind, Event};
use serde_json::{json, Value};
use sha2::{Digest as _, Sha256};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{collections::HashMap, future::Future, mem::take, process::exit, sync::LazyLock};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::time::{sleep, timeout};

static HEARD: AtomicI64 = AtomicI64::new(0); // when anything was heard last; 0 before that
static GIVEN: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let words = std::env::args().skip(1);
    words.filter_map(|word| word.split_once('=').map(|(name, value)| (name.into(), value.into()))).collect()
});

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
type Request = (String, Delivery);
type Held = HashMap<ShortString, UnboundedSender<Request>>;

/// Connect to the host as it was given: from a URL the library takes no address of IPv6.
async fn connect() -> Result<Connection> {
    let mut place: AMQPUri = GIVEN["url"].parse()?;
    place.authority.host = GIVEN["host"].clone();
    Ok(Connection::connect_uri(place, Default::default()).await?)
}

/// Talk until there is too long a silence (IOP-5).
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let limit = (GIVEN["control_timeout"].parse::<f64>()? * 1e9) as i64;
    let connection = connect().await?;
    let control = connection.create_channel().await?;
    let bits = QueueDeclareOptions { exclusive: true, auto_delete: true, ..Default::default() };
    control.queue_declare("".into(), bits, Default::default()).await?; // below, no name is this queue
    for key in ["control_key", "private_key"].map(|name| GIVEN[name].as_str().into()) {
        control.queue_bind("".into(), "amq.topic".into(), key, Default::default(), Default::default()).await?;
    }
    let bits = BasicConsumeOptions { no_ack: true, ..Default::default() };
    let mut messages = control.basic_consume("".into(), "".into(), bits, Default::default()).await?;
    println!("READY {}", GIVEN["client_name"]);
    let mut held = Held::new();
    while HEARD.load(Relaxed) == 0 || now() < HEARD.load(Relaxed) + limit {
        let Ok(next) = timeout(Duration::from_millis(100), messages.next()).await else { continue };
        HEARD.store(now(), Relaxed);
        handle(&control, next.ok_or("the control connection is lost")??, &mut held).await?;
    }
    eprintln!("rust client: nothing heard");
    exit(3)
}

async fn handle(control: &Channel, message: Delivery, held: &mut Held) -> Result<()> {
    let (arrived, about) = (now(), message.properties.clone());
    let text = |name| field(&about, name).and_then(AMQPValue::as_long_string).map(LongString::to_string);
    let kind = text("CONTROL_TYPE").or(text("CONTROL_TOPIC")).unwrap_or_default();
    let id = about.correlation_id().clone().unwrap_or_default();
    match (kind.as_str(), text("TEST_NAME")) {
        ("INVITE", Some(test)) if GIVEN["tests"].split(' ').all(|known| known != test) => {
            let reason = json!({"REASON": string(&format!("there is no test {test}"))});
            reply(control, &about, "DECLINE", reason, "").await?;
        }
        ("INVITE", _) => {
            let key = json!({"CLIENT_PRIVATE_CONTROL_KEY": string(&GIVEN["private_key"])});
            reply(control, &about, "ENLIST", key, &GIVEN["capabilities"]).await?;
        }
        ("CLOCK_SYNCH", _) => {
            let t1 = field(&about, "T1").unwrap_or(&AMQPValue::Void);
            let [t2, t3] = [arrived, now()].map(AMQPValue::LongLongInt);
            reply(control, &about, &kind, json!({"T1": t1, "T2": t2, "T3": t3}), "").await?;
        }
        ("ASSIGN_ROLE", _) => {
            let (sender, asked) = unbounded_channel();
            let role = Role { correlation: format!("{}.{id}", GIVEN["instance"]), ..Default::default() };
            tokio::spawn(play(control.clone(), role, asked)); // it fails with the control connection only
            sender.send((kind, message))?;
            held.insert(id, sender);
        }
        ("START" | "STATUS_REQUEST", _) => {
            let last = field(&about, "FINAL") == Some(&true.into());
            let role = if last { held.remove(&id) } else { held.get(&id).cloned() };
            role.map(|role| role.send((kind, message))); // nobody listens when the role failed to begin
        }
        ("TERMINATE", _) => exit(0),
        _ => {} // an unknown type is ignored
    }
    Ok(())
}

async fn reply(control: &Channel, to: &BasicProperties, kind: &str, mut fields: Value, body: &str) -> Result<()> {
    fields["CONTROL_TYPE"] = string(kind);
    fields["CLIENT_NAME"] = string(&GIVEN["client_name"]);
    fields["CLIENT_INSTANCE"] = string(&GIVEN["instance"]);
    let properties = serde_json::from_value(json!({"headers": fields, "correlation_id": to.correlation_id()}))?;
    let to = to.reply_to().clone().unwrap_or_default();
    control.basic_publish("".into(), to, Default::default(), body.as_bytes(), properties).await?;
    Ok(())
}

/// Do what a role is asked, one after the other: accept it when it is ready, then report.
async fn play(control: Channel, mut role: Role, mut asked: UnboundedReceiver<Request>) -> Result<()> {
    while let Some((kind, request)) = role.attend(asked.recv()).await {
        let about = &request.properties;
        let last = field(about, "FINAL") != Some(&false.into());
        let done = match kind.as_str() {
            "ASSIGN_ROLE" => role.open(&request).await,
            "START" => role.start(about).await,
            _ => role.status(about, last).await,
        };
        role.keep(done);
        let mut told = json!({"CORRELATION_ID": string(&role.correlation)});
        if kind == "ASSIGN_ROLE" && role.patience == 0 {
            reply(&control, about, "ACCEPT_ROLE", told, "").await?;
            continue;
        }
        while now() < role.patience {
            role.attend(sleep(Duration::from_millis(1))).await;
        }
        for connection in role.connections.iter().filter(|_| last) {
            let _ = connection.close(200, "done".into()).await; // the broker may have closed it already
        }
        told["MESSAGE_COUNT"] = json!({"LongInt": role.count});
        reply(&control, about, "REPORT", told, &json!(take(&mut role.told)).to_string()).await?;
        if last {
            break;
        }
    }
    Ok(())
}

/// A role has its parameters, what it opened, and what happened since its last report.
#[derive(Default)]
struct Role {
    correlation: String,
    p: Value,
    connections: Vec<Connection>,
    channels: Vec<Channel>, // one for each of `lines`
    deliveries: SelectAll<BoxStream<'static, (usize, lapin::Result<Delivery>)>>,
    events: SelectAll<BoxStream<'static, Event>>,
    told: HashMap<&'static str, Vec<Value>>,
    count: i64,
    patience: i64, // of a role that failed: until when a reason of the broker may still come
}

impl Role {
    fn is(&self, name: &str) -> bool {
        self.p[name] == true
    }

    fn number(&self, name: &str) -> u64 {
        self.p[name].as_u64().unwrap_or_default()
    }

    fn tell(&mut self, what: &'static str, about: Value) {
        self.told.entry(what).or_default().push(about);
    }

    /// Tell what went wrong. A channel is closed for us before we are told why.
    fn keep(&mut self, done: Result<()>) {
        let Err(error) = done else { return };
        if self.patience == 0 {
            self.patience = now() + if error.is::<lapin::Error>() { 5_000_000_000 } else { 0 };
        }
        self.tell("error", json!(error.to_string()));
    }

    /// Tell how the broker closed a channel or a connection, or that one was lost.
    fn heed(&mut self, event: Event) {
        let Event::Error(error) = event else { return };
        if let ErrorKind::ProtocolError(said) = error.kind() {
            let lost = self.connections.iter().any(|one| !one.status().connected());
            let level = if lost { "connection" } else { "channel" };
            self.tell("closed", json!({"level": level, "code": said.get_id(), "text": said.get_message().as_str()}));
            self.patience = now();
        }
        self.keep(Err(error.into()));
    }

    /// Wait for something, and take in what comes meanwhile.
    async fn attend<T>(&mut self, wanted: impl Future<Output = T>) -> T {
        tokio::pin!(wanted);
        loop {
            tokio::select! {
                found = &mut wanted => return found,
                Some(event) = self.events.next() => self.heed(event),
                Some((at, message)) = self.deliveries.next() => {
                    let taken = self.take(at, message).await;
                    self.keep(taken);
                }
            }
        }
    }

    async fn open(&mut self, request: &Delivery) -> Result<()> {
        self.p = serde_json::from_slice(&request.data)?;
        let sends = field(&request.properties, "ROLE") == Some(&LongString::from("SENDER").into());
        for line in self.p["lines"].as_array().cloned().ok_or("there are no lines")? {
            if line["connect"] == true {
                let connection = connect().await?;
                self.events.push(connection.events_listener().boxed());
                self.connections.push(connection);
            }
            let channel = self.connections.last().ok_or("there is no connection")?.create_channel().await?;
            if self.number("tx_batch") > 0 {
                channel.tx_select().await?;
            } else if sends && !self.is("mandatory") && !self.is("immediate") {
                channel.confirm_select(Default::default()).await?;
            }
            if !sends {
                self.consume(&channel, &line).await?;
            }
            self.channels.push(channel);
        }
        Ok(())
    }

    async fn consume(&mut self, channel: &Channel, line: &Value) -> Result<()> {
        let [queue, exchange, key] = ["queue", "exchange", "key"].map(|name| line[name].as_str().unwrap_or_default());
        if queue.is_empty() {
            let bits = QueueDeclareOptions { exclusive: true, ..Default::default() };
            channel.queue_declare("".into(), bits, Default::default()).await?; // below, no name is this queue
            channel.queue_bind("".into(), exchange.into(), key.into(), Default::default(), Default::default()).await?;
        }
        channel.basic_qos(self.number("prefetch_count") as u16, Default::default()).await?;
        let [no_ack, no_local, exclusive] = ["no_ack", "no_local", "exclusive"].map(|name| self.is(name));
        let bits = BasicConsumeOptions { no_ack, no_local, exclusive, nowait: false };
        let messages = channel.basic_consume(queue.into(), "lab".into(), bits, Default::default()).await?;
        let (at, pause) = (self.channels.len(), self.number("every_ns"));
        let paced = messages.then(move |message| async move {
            rest(pause).await;
            (at, message)
        });
        self.deliveries.push(paced.boxed());
        Ok(())
    }

    /// Publish message by message, the publishers in turn, then wait until the broker has them.
    async fn start(&mut self, asked: &BasicProperties) -> Result<()> {
        let [first, count] = ["FIRST", "MESSAGE_COUNT"].map(|name| number(asked, name) as u64);
        let begun = now();
        self.tell("started_ns", json!(begun.to_string()));
        for done in 0..count {
            rest((begun + (done * self.number("every_ns")) as i64 - now()).max(0) as u64).await;
            for at in 0..self.channels.len() {
                self.publish(at, first + done).await?;
                self.commit(at, done + 1).await?;
            }
        }
        for at in 0..self.channels.len() {
            let confirmed = self.channels[at].wait_for_confirms().await?;
            self.commit(at, 0).await?;
            self.channels[at].basic_qos(0, Default::default()).await?; // what came back was here before its answer
            for message in confirmed.into_iter().chain(self.channels[at].wait_for_confirms().await?) {
                let headers = message.delivery.properties.headers();
                self.tell("returned", json!({"code": message.reply_code, "headers": headers}));
            }
        }
        self.tell("ended_ns", json!(now().to_string()));
        Ok(())
    }

    /// End a transaction, if there are any, after so many messages.
    async fn commit(&mut self, at: usize, messages: u64) -> lapin::Result<()> {
        match self.number("tx_batch") {
            batch if batch > 0 && messages % batch == 0 => self.channels[at].tx_commit().await,
            _ => Ok(()),
        }
    }

    async fn publish(&mut self, at: usize, sequence: u64) -> Result<()> {
        let (body, properties) = match self.p["envelopes"].as_array().filter(|all| !all.is_empty()) {
            Some(all) => project(STANDARD.decode(all[sequence as usize % all.len()].as_str().unwrap_or_default())?)?,
            None => (self.body(sequence), self.properties(at, sequence)?),
        };
        let to = self.p["destinations"].as_array().ok_or("there are no destinations")?;
        let to = &to[(at + sequence as usize) % to.len()];
        let [exchange, key] = ["exchange", "key"].map(|name| to[name].as_str().unwrap_or_default().into());
        let bits = BasicPublishOptions { mandatory: self.is("mandatory"), immediate: self.is("immediate") };
        drop(self.channels[at].basic_publish(exchange, key, bits, &body, properties).await?);
        let (sha256, _) = self.look(&body, sequence);
        self.tell("messages", json!({"publisher": at, "sequence": sequence, "sha256": sha256}));
        self.count += 1;
        Ok(())
    }

    fn properties(&self, publisher: usize, sequence: u64) -> Result<BasicProperties> {
        let mut headers = self.p["header_values"].clone();
        headers["CLIENT_NAME"] = string(&GIVEN["client_name"]);
        headers["PUBLISHER"] = json!({"LongInt": publisher});
        headers["SEQUENCE"] = json!({"LongInt": sequence});
        headers["SENT_NS"] = json!({"LongLongInt": now()});
        Ok(serde_json::from_value(json!({
            "headers": headers, "correlation_id": self.correlation, "delivery_mode": self.p["delivery_mode"],
            "content_type": "application/octet-stream",
        }))?)
    }

    /// Give the body of a message: the first 31 bytes of a hash, over and over.
    fn body(&self, sequence: u64) -> Vec<u8> {
        let size = self.number("message_bytes") as usize;
        let mut body = Sha256::digest(format!("{}.{sequence}", self.number("seed")))[..31].repeat(size / 31 + 1);
        body.truncate(size);
        body
    }

    /// Give the hash of a body, and the offset where it parts from the one that was due.
    fn look(&self, body: &[u8], sequence: u64) -> (String, Option<usize>) {
        if self.p["check"] != "hash" {
            return Default::default();
        }
        let due = self.body(sequence);
        let parts = (due != body).then(|| due.iter().zip(body).take_while(|(a, b)| a == b).count());
        (Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect(), parts)
    }

    /// Look at one delivery and acknowledge it as we were told, or put it back.
    async fn take(&mut self, at: usize, message: lapin::Result<Delivery>) -> Result<()> {
        HEARD.store(now(), Relaxed);
        let message = message?;
        let (tag, every) = (message.delivery_tag, self.number("ack_every"));
        let put_back = tag <= self.number("requeue_first");
        let due = every > 0 && tag % every == 0 && !put_back;
        if due && self.is("ack_first") {
            self.channels[at].basic_ack(tag, BasicAckOptions { multiple: every > 1 }).await?;
        }
        self.note(at, &message, put_back)?;
        if put_back {
            self.channels[at].basic_nack(tag, BasicNackOptions { requeue: true, multiple: false }).await?;
        } else if due && !self.is("ack_first") {
            self.channels[at].basic_ack(tag, BasicAckOptions { multiple: every > 1 }).await?;
        }
        Ok(self.commit(at, tag).await?)
    }

    /// List one delivery.
    fn note(&mut self, at: usize, message: &Delivery, put_back: bool) -> Result<()> {
        let (arrived, body) = (now(), &message.data);
        let mut properties = serde_json::to_value(&message.properties)?;
        properties["type"] = properties["kind"].take(); // the library calls it so
        let headers = properties["headers"].take();
        let (sha256, differs) = self.look(body, number(&message.properties, "SEQUENCE") as u64);
        self.count += i64::from(!put_back);
        self.tell(
            "messages",
            json!({
                "consumer": self.p["lines"][at]["index"], "redelivered": message.redelivered, "put_back": put_back,
                "arrived_ns": arrived.to_string(), "length": body.len(), "sha256": sha256, "differs": differs,
                "headers": headers, "properties": properties, "body": self.is("echo").then(|| STANDARD.encode(body)),
            }),
        );
        Ok(())
    }

    /// Wait for so many messages, or so long; then end the role if this is the last request.
    async fn status(&mut self, asked: &BasicProperties, last: bool) -> Result<()> {
        let end = now() + number(asked, "WAIT_MS") * 1_000_000;
        while self.count < number(asked, "WAIT_COUNT") && self.patience == 0 && now() < end {
            self.attend(sleep(Duration::from_millis(1))).await;
        }
        if !last || self.deliveries.is_empty() {
            return Ok(());
        }
        for channel in &self.channels {
            channel.basic_cancel("lab".into(), Default::default()).await?;
        }
        while let Some((at, message)) = self.deliveries.next().await {
            self.take(at, message).await?;
        }
        for at in 0..self.channels.len() {
            if self.is("ack_rest") {
                self.channels[at].basic_ack(0, BasicAckOptions { multiple: true }).await?;
                // all that is open
            }
            self.commit(at, 0).await?;
            self.channels[at].basic_qos(0, Default::default()).await?; // the broker has the acknowledgements
            if self.p["lines"][at]["queue"] == "" {
                let left = self.channels[at].queue_delete("".into(), Default::default()).await?;
                self.tell("left", json!(left));
            }
        }
        Ok(())
    }
}

/// Unix time in nanoseconds.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64)
}

/// Wait so many nanoseconds; a sleep of none would take a millisecond.
async fn rest(nanoseconds: u64) {
    if nanoseconds > 0 {
        sleep(Duration::from_nanos(nanoseconds)).await;
    }
}

fn string(text: &str) -> Value {
    json!({"LongString": text.as_bytes()})
}

fn number(of: &BasicProperties, name: &str) -> i64 {
    field(of, name).and_then(AMQPValue::as_long_int).unwrap_or_default().into()
}

fn field<'a>(of: &'a BasicProperties, name: &str) -> Option<&'a AMQPValue> {
    of.headers().as_ref()?.inner().get(name)
}

/// Carry an envelope as the RabbitMQ binding says; what is absent stays absent.
fn project(body: Vec<u8>) -> Result<(Vec<u8>, BasicProperties)> {
    let read: Value = serde_json::from_slice(&body)?;
    let meta = &read["meta"];
    if !meta.is_null() && !meta.is_object() {
        return Err("the meta of an envelope is no object".into());
    }
    let mut headers = json!({"x-source-lang": meta["lang"].as_str().map(string)});
    for (name, count) in [("x-schema-version", &meta["schema_version"]), ("x-attempts", &read["attempts"])] {
        headers[name] = count.as_i64().map(|count| json!({"LongInt": count})).into();
    }
    headers.as_object_mut().into_iter().for_each(|all| all.retain(|_, value| !value.is_null()));
    let blank = [' ', '\t', '\n', '\x0b', '\x0c', '\r'];
    let job = read["job"].as_str().filter(|job| !job.trim_matches(blank).is_empty());
    let properties = serde_json::from_value(json!({
        "headers": headers, "kind": job.or(read["urn"].as_str()), "correlation_id": read["trace_id"], "message_id": meta["id"],
        "app_id": "babelqueue", "content_type": "application/json", "content_encoding": "utf-8", "delivery_mode": 2,
    }))?;
    Ok((body, properties))
}
