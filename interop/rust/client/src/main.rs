//! The Rust client of the lab (docs/reference/lab-protocol.md), on the crate lapin.
//!
//! It does what it is told and reports what it did; it never judges. First comes the control conversation,
//! then the roles, then messages and header values. Header fields of control messages are handled in
//! their tagged form: `["S", "INVITE"]`.
//!
//! lapin hands a returned message out with the confirm that comes after it, so a return that a broker sends
//! after its confirm would stay hidden. Where messages may be returned the channel has no confirms, and the
//! synchronous call that ends every batch is the barrier.

use base64::{engine::general_purpose::STANDARD, Engine as _};
use futures_util::stream::{BoxStream, SelectAll, StreamExt};
use lapin::types::{AMQPType, AMQPValue, DecimalValue, FieldTable, ShortString};
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
type Request = (Delivery, Value);
type Held = HashMap<ShortString, UnboundedSender<Request>>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    match converse().await {
        Ok(()) => stop(3, "nothing heard"),
        Err(error) => stop(1, &error.to_string()),
    }
}

fn stop(code: i32, why: &str) {
    eprintln!("rust client: {why}");
    exit(code)
}

/// Connect to the host as it was given: from a URL the library takes no address of IPv6.
async fn connect() -> Result<Connection> {
    let mut place: AMQPUri = GIVEN["url"].parse()?;
    place.authority.host = GIVEN["host"].clone();
    Ok(Connection::connect_uri(place, Default::default()).await?)
}

/// Talk until there is too long a silence (IOP-5).
async fn converse() -> Result<()> {
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
    Ok(())
}

async fn handle(control: &Channel, message: Delivery, held: &mut Held) -> Result<()> {
    let (arrived, mut fields) = (now(), tag_table(&message.properties));
    if fields["CONTROL_TYPE"].is_null() {
        fields["CONTROL_TYPE"] = fields["CONTROL_TOPIC"].take();
    }
    let id = message.properties.correlation_id().clone().unwrap_or_default();
    match (text(&fields["CONTROL_TYPE"][1]), text(&fields["TEST_NAME"][1])) {
        ("INVITE", test) if GIVEN["tests"].split(' ').all(|known| known != test) && !test.is_empty() => {
            let reason = json!({"REASON": ["S", format!("there is no test {test}")]});
            reply(control, &message, "DECLINE", reason, "").await?;
        }
        ("INVITE", _) => {
            let key = json!({"CLIENT_PRIVATE_CONTROL_KEY": ["S", GIVEN["private_key"]]});
            reply(control, &message, "ENLIST", key, &GIVEN["capabilities"]).await?;
        }
        ("CLOCK_SYNCH", _) => {
            let [t2, t3] = [arrived, now()].map(|stamp| json!(["l", stamp.to_string()]));
            reply(control, &message, "CLOCK_SYNCH", json!({"T1": fields["T1"], "T2": t2, "T3": t3}), "").await?;
        }
        ("ASSIGN_ROLE", _) => {
            let (sender, asked) = unbounded_channel();
            let play = play(control.clone(), Role::new(&id), asked);
            tokio::spawn(async { play.await.unwrap_or_else(|error| stop(1, &error.to_string())) });
            sender.send((message, fields))?;
            held.insert(id, sender);
        }
        ("START" | "STATUS_REQUEST", _) => {
            let last = fields["FINAL"][1] == "true";
            let role = if last { held.remove(&id) } else { held.get(&id).cloned() };
            role.map(|role| role.send((message, fields))); // nobody listens when the role failed to begin
        }
        ("TERMINATE", _) => exit(0),
        _ => {} // an unknown type is ignored
    }
    Ok(())
}

async fn reply(control: &Channel, request: &Delivery, kind: &str, mut fields: Value, body: &str) -> Result<()> {
    fields["CONTROL_TYPE"] = json!(["S", kind]);
    fields["CLIENT_NAME"] = json!(["S", GIVEN["client_name"]]);
    fields["CLIENT_INSTANCE"] = json!(["S", GIVEN["instance"]]);
    let id = request.properties.correlation_id().clone().unwrap_or_default();
    let properties = BasicProperties::default().with_headers(untag_table(&fields)).with_correlation_id(id);
    let to = request.properties.reply_to().clone().unwrap_or_default();
    control.basic_publish("".into(), to, Default::default(), body.as_bytes(), properties).await?;
    Ok(())
}

/// Do what a role is asked, one after the other: accept it when it is ready, then report.
async fn play(control: Channel, mut role: Role, mut asked: UnboundedReceiver<Request>) -> Result<()> {
    while let Some((request, fields)) = role.attend(asked.recv()).await {
        let done = match text(&fields["CONTROL_TYPE"][1]) {
            "ASSIGN_ROLE" => role.open(&request.data, fields["ROLE"][1] == "SENDER").await,
            "START" => role.start(&fields).await,
            _ => role.status(&fields).await,
        };
        role.keep(done);
        let mut told = json!({"CORRELATION_ID": ["S", role.correlation]});
        if fields["CONTROL_TYPE"][1] == "ASSIGN_ROLE" && !role.failed() {
            reply(&control, &request, "ACCEPT_ROLE", told, "").await?;
            continue;
        }
        let (report, last) = (role.report().await, fields["FINAL"][1] != "false");
        for connection in role.connections.iter().filter(|_| last) {
            let _ = connection.close(200, "done".into()).await; // the broker may have closed it already
        }
        told["MESSAGE_COUNT"] = json!(["I", role.count.to_string()]);
        reply(&control, &request, "REPORT", told, &report.to_string()).await?;
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
    lines: Vec<Line>,
    deliveries: SelectAll<BoxStream<'static, (usize, lapin::Result<Delivery>)>>,
    events: SelectAll<BoxStream<'static, Event>>,
    messages: Vec<Value>,
    returned: Vec<Value>,
    told: Value, // the rest of the report
    count: u64,
    patience: i64, // until when a reason of the broker may still come
}

/// A line is the channel of a publisher or a consumer, and what that has open.
struct Line {
    asked: Value,
    channel: Channel,
    open: u64,
    last: u64,
}

impl Role {
    fn new(id: &ShortString) -> Self {
        let told = json!({"left": 0, "closed": null, "error": "", "started_ns": "0", "ended_ns": "0"});
        Self { correlation: format!("{}.{id}", GIVEN["instance"]), told, ..Default::default() }
    }

    fn is(&self, name: &str) -> bool {
        self.p[name] == true
    }

    fn number(&self, name: &str) -> u64 {
        self.p[name].as_u64().unwrap_or_default()
    }

    fn failed(&self) -> bool {
        !self.told["closed"].is_null() || self.told["error"] != ""
    }

    /// Keep what went wrong first. A channel is closed for us before we are told why.
    fn keep(&mut self, done: Result<()>) {
        let Err(error) = done else { return };
        if error.is::<lapin::Error>() && self.patience == 0 {
            self.patience = now() + 5_000_000_000;
        }
        if self.told["error"] == "" {
            self.told["error"] = json!(error.to_string());
        }
    }

    /// Keep how the broker closed a channel or a connection, or that one was lost.
    fn heed(&mut self, event: Event) {
        let Event::Error(error) = event else { return };
        match error.kind() {
            ErrorKind::ProtocolError(said) if self.told["closed"].is_null() => {
                let lost = self.connections.iter().any(|one| !one.status().connected());
                let level = if lost { "connection" } else { "channel" };
                self.told["closed"] =
                    json!({"level": level, "code": said.get_id(), "text": said.get_message().as_str()});
            }
            _ => self.keep(Err(error.into())),
        }
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

    /// Give what is new; who failed waits for the reason of the broker.
    async fn report(&mut self) -> Value {
        while self.told["closed"].is_null() && now() < self.patience {
            self.attend(sleep(Duration::from_millis(1))).await;
        }
        let mut told = self.told.clone();
        told["messages"] = take(&mut self.messages).into();
        told["returned"] = take(&mut self.returned).into();
        told
    }

    async fn open(&mut self, parameters: &[u8], sends: bool) -> Result<()> {
        self.p = serde_json::from_slice(parameters)?;
        for asked in self.p["lines"].as_array().cloned().ok_or("there are no lines")? {
            if asked["connect"] == true {
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
                self.consume(&channel, &asked).await?;
            }
            self.lines.push(Line { asked, channel, open: 0, last: 0 });
        }
        Ok(())
    }

    async fn consume(&mut self, channel: &Channel, asked: &Value) -> Result<()> {
        let [queue, exchange, key] = ["queue", "exchange", "key"].map(|name| text(&asked[name]));
        if queue.is_empty() {
            let bits = QueueDeclareOptions { exclusive: true, ..Default::default() };
            channel.queue_declare("".into(), bits, Default::default()).await?; // below, no name is this queue
            channel.queue_bind("".into(), exchange.into(), key.into(), Default::default(), Default::default()).await?;
        }
        channel.basic_qos(self.number("prefetch_count") as u16, Default::default()).await?;
        let [no_ack, no_local, exclusive] = ["no_ack", "no_local", "exclusive"].map(|name| self.is(name));
        let bits = BasicConsumeOptions { no_ack, no_local, exclusive, nowait: false };
        let messages = channel.basic_consume(queue.into(), "lab".into(), bits, Default::default()).await?;
        let (at, pause) = (self.lines.len(), self.number("every_ns"));
        let paced = messages.then(move |message| async move {
            rest(pause).await;
            (at, message)
        });
        self.deliveries.push(paced.boxed());
        Ok(())
    }

    /// Publish message by message, the publishers in turn, then wait until the broker has them.
    async fn start(&mut self, fields: &Value) -> Result<()> {
        let [first, count] = ["FIRST", "MESSAGE_COUNT"].map(|name| number(fields, name));
        let begun = now();
        self.told["started_ns"] = json!(begun.to_string());
        for done in 0..count {
            rest((begun + (done * self.number("every_ns")) as i64 - now()).max(0) as u64).await;
            for at in 0..self.lines.len() {
                self.publish(at, first + done).await?;
                self.commit(at, done + 1).await?;
            }
        }
        for at in 0..self.lines.len() {
            let confirmed = self.lines[at].channel.wait_for_confirms().await?;
            self.settle(at).await?;
            for message in confirmed.into_iter().chain(self.lines[at].channel.wait_for_confirms().await?) {
                let headers = tag_table(&message.delivery.properties);
                self.returned.push(json!({"code": message.reply_code, "headers": headers}));
            }
        }
        self.told["ended_ns"] = json!(now().to_string());
        Ok(())
    }

    /// End a transaction, if there are any, after so many messages.
    async fn commit(&mut self, at: usize, messages: u64) -> lapin::Result<()> {
        match self.number("tx_batch") {
            batch if batch > 0 && messages % batch == 0 => self.lines[at].channel.tx_commit().await,
            _ => Ok(()),
        }
    }

    /// Commit, and make a call whose answer says that the broker has all before it.
    async fn settle(&mut self, at: usize) -> lapin::Result<()> {
        self.commit(at, 0).await?;
        self.lines[at].channel.basic_qos(0, Default::default()).await
    }

    async fn publish(&mut self, at: usize, sequence: u64) -> Result<()> {
        let (body, properties) = match self.p["envelopes"].as_array().filter(|all| !all.is_empty()) {
            Some(all) => project(STANDARD.decode(text(&all[sequence as usize % all.len()]))?)?,
            None => (self.body(sequence), self.properties(at, sequence)),
        };
        let to = self.p["destinations"].as_array().ok_or("there are no destinations")?;
        let to = &to[(at + sequence as usize) % to.len()];
        let [exchange, key] = ["exchange", "key"].map(|name| text(&to[name]).into());
        let bits = BasicPublishOptions { mandatory: self.is("mandatory"), immediate: self.is("immediate") };
        drop(self.lines[at].channel.basic_publish(exchange, key, bits, &body, properties).await?);
        let (sha256, _) = self.look(&body, sequence);
        self.messages.push(json!({"publisher": at, "sequence": sequence, "sha256": sha256}));
        self.count += 1;
        Ok(())
    }

    fn properties(&self, publisher: usize, sequence: u64) -> BasicProperties {
        let mut headers = self.p["header_fields"].clone();
        headers["CLIENT_NAME"] = json!(["S", GIVEN["client_name"]]);
        headers["PUBLISHER"] = json!(["I", publisher.to_string()]);
        headers["SEQUENCE"] = json!(["I", sequence.to_string()]);
        headers["SENT_NS"] = json!(["l", now().to_string()]);
        BasicProperties::default()
            .with_headers(untag_table(&headers))
            .with_correlation_id(self.correlation.as_str().into())
            .with_delivery_mode(self.number("delivery_mode") as u8)
            .with_content_type("application/octet-stream".into())
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
        (hex(&Sha256::digest(body)), parts)
    }

    /// Look at one delivery and acknowledge it as we were told, or put it back.
    async fn take(&mut self, at: usize, message: lapin::Result<Delivery>) -> Result<()> {
        HEARD.store(now(), Relaxed);
        let message = message?;
        let tag = message.delivery_tag;
        if tag <= self.number("requeue_first") {
            self.note(at, &message, true)?;
            let bits = BasicNackOptions { requeue: true, multiple: false };
            self.lines[at].channel.basic_nack(tag, bits).await?;
            return Ok(self.commit(at, tag).await?);
        }
        self.lines[at].last = tag;
        self.lines[at].open += 1;
        if self.is("ack_first") {
            self.acknowledge(at).await?;
        }
        self.note(at, &message, false)?;
        self.count += 1;
        if self.lines[at].open == self.number("ack_every") {
            self.acknowledge(at).await?;
        }
        Ok(self.commit(at, tag).await?)
    }

    /// Acknowledge what is open.
    async fn acknowledge(&mut self, at: usize) -> Result<()> {
        let bits = BasicAckOptions { multiple: self.number("ack_every") != 1 };
        if take(&mut self.lines[at].open) > 0 && !self.is("no_ack") {
            self.lines[at].channel.basic_ack(self.lines[at].last, bits).await?;
        }
        Ok(())
    }

    /// List one delivery.
    fn note(&mut self, at: usize, message: &Delivery, put_back: bool) -> Result<()> {
        let (arrived, body, headers) = (now(), &message.data, tag_table(&message.properties));
        let mut properties = serde_json::to_value(&message.properties)?;
        properties["type"] = properties["kind"].take(); // the library calls it so
        properties["headers"].take();
        let (sha256, differs) = self.look(body, number(&headers, "SEQUENCE"));
        self.messages.push(json!({
            "consumer": self.lines[at].asked["index"], "redelivered": message.redelivered, "put_back": put_back,
            "arrived_ns": arrived.to_string(), "length": body.len(), "sha256": sha256, "differs": differs,
            "headers": headers, "properties": properties, "body": self.is("echo").then(|| STANDARD.encode(body)),
        }));
        Ok(())
    }

    /// Wait for so many messages, or so long; then end the role if this is the last request.
    async fn status(&mut self, fields: &Value) -> Result<()> {
        let end = now() + number(fields, "WAIT_MS") as i64 * 1_000_000;
        while self.count < number(fields, "WAIT_COUNT") && !self.failed() && now() < end {
            self.attend(sleep(Duration::from_millis(1))).await;
        }
        if fields["FINAL"][1] != "true" || self.deliveries.is_empty() {
            return Ok(());
        }
        for one in &self.lines {
            one.channel.basic_cancel("lab".into(), Default::default()).await?;
        }
        while let Some((at, message)) = self.deliveries.next().await {
            self.take(at, message).await?;
        }
        for at in 0..self.lines.len() {
            self.acknowledge(at).await?;
            self.settle(at).await?;
            if self.lines[at].asked["queue"] == "" {
                let left = self.lines[at].channel.queue_delete("".into(), Default::default()).await?;
                self.told["left"] = json!(left as u64 + self.told["left"].as_u64().unwrap_or_default());
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Give a header field that is a number, or 0.
fn number(fields: &Value, name: &str) -> u64 {
    text(&fields[name][1]).parse().unwrap_or_default()
}

/// Carry an envelope as the RabbitMQ binding says; what is absent stays absent.
fn project(body: Vec<u8>) -> Result<(Vec<u8>, BasicProperties)> {
    let read: Value = serde_json::from_slice(&body)?;
    let meta = &read["meta"];
    if !meta.is_null() && !meta.is_object() {
        return Err("the meta of an envelope is no object".into());
    }
    let mut headers = json!({"x-source-lang": ["S", meta["lang"]]});
    for (name, count) in [("x-schema-version", &meta["schema_version"]), ("x-attempts", &read["attempts"])] {
        headers[name] = json!(["I", count.as_i64().map(|count| count.to_string())]);
    }
    headers.as_object_mut().into_iter().for_each(|all| all.retain(|_, tagged| !tagged[1].is_null()));
    let blank = [' ', '\t', '\n', '\x0b', '\x0c', '\r'];
    let job = read["job"].as_str().filter(|job| !job.trim_matches(blank).is_empty());
    let properties: BasicProperties = serde_json::from_value(json!({
        "kind": job.or(read["urn"].as_str()), "correlation_id": read["trace_id"], "message_id": meta["id"],
        "app_id": "babelqueue", "content_type": "application/json", "content_encoding": "utf-8", "delivery_mode": 2,
    }))?;
    Ok((body, properties.with_headers(untag_table(&headers))))
}

/// Give the tagged form of a header value; the tag is the id that lapin has for its type.
fn tag(value: &AMQPValue) -> Value {
    match value {
        AMQPValue::Float(it) => json!(["f", it.to_string()]),
        AMQPValue::Double(it) => json!(["d", it.to_string()]),
        AMQPValue::DecimalValue(it) => json!(["D", it.scale.to_string(), (it.value as i32).to_string()]),
        AMQPValue::LongString(it) => match std::str::from_utf8(it.as_bytes()) {
            Ok(text) => json!(["S", text]),
            Err(_) => json!(["x", hex(it.as_bytes())]),
        },
        AMQPValue::ByteArray(it) => json!(["x", hex(it.as_slice())]),
        AMQPValue::FieldArray(items) => json!(["A", items.as_slice().iter().map(tag).collect::<Vec<_>>()]),
        AMQPValue::FieldTable(table) => json!(["F", tag_fields(table)]),
        other => {
            let named = serde_json::to_value(other).unwrap_or_default(); // {"LongInt": 7}, or "Void"
            let values = named.as_object().into_iter().flat_map(|named| named.values()).map(Value::to_string);
            json!([other.get_type().get_id().to_string()].into_iter().chain(values).collect::<Vec<_>>())
        }
    }
}

fn tag_fields(table: &FieldTable) -> Value {
    table.inner().iter().map(|(name, value)| (name.as_str(), tag(value))).collect()
}

/// Give the headers of a message with their values tagged.
fn tag_table(properties: &BasicProperties) -> Value {
    properties.headers().as_ref().map_or(json!({}), tag_fields)
}

/// Give the library's value for a tagged one.
fn untag(tagged: &Value) -> AMQPValue {
    let word = |at: usize| text(&tagged[at]);
    let items = || tagged[1].as_array().into_iter().flatten();
    match word(0) {
        "f" => AMQPValue::Float(word(1).parse().unwrap_or_default()),
        "d" => AMQPValue::Double(word(1).parse().unwrap_or_default()),
        "D" => {
            let [scale, value] = [1, 2].map(|at| word(at).parse::<i32>().unwrap_or_default());
            AMQPValue::DecimalValue(DecimalValue { scale: scale as u8, value: value as u32 })
        }
        "S" => AMQPValue::LongString(word(1).into()),
        "x" => {
            let pairs = (0..word(1).len()).step_by(2).map(|at| &word(1)[at..at + 2]);
            let bytes = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap_or_default());
            AMQPValue::ByteArray(bytes.collect::<Vec<_>>().into())
        }
        "A" => AMQPValue::FieldArray(items().map(untag).collect::<Vec<_>>().into()),
        "F" => AMQPValue::FieldTable(untag_table(&tagged[1])),
        tag => {
            let value = serde_json::from_str(word(1)).unwrap_or_default();
            let kind = tag.chars().next().and_then(AMQPType::from_id);
            kind.and_then(|kind| AMQPValue::try_from(&value, kind)).unwrap_or(AMQPValue::Void)
        }
    }
}

/// Give the library's header table for a tagged one.
fn untag_table(tagged: &Value) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in tagged.as_object().into_iter().flatten() {
        table.insert(name.as_str().into(), untag(value));
    }
    table
}
