//! The roles: a sender publishes when it is told to, a receiver consumes from when it accepts.
//!
//! lapin hands a returned message out with the confirm that comes after it, so a return that a
//! broker sends after its confirm would stay hidden. Where messages may be returned the channel has
//! no confirms, and the synchronous call that ends every batch is the barrier.

use crate::{connect, message::*, GIVEN, HEARD, INSTANCE};
use base64::{engine::general_purpose::STANDARD, Engine as _};
use futures_util::stream::{BoxStream, SelectAll, StreamExt};
use lapin::{message::Delivery, options::*, BasicProperties, Channel, Connection, ErrorKind, Event};
use serde_json::{json, Value};
use std::future::Future;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::time::{sleep, sleep_until};

/// A role has its parameters, what it opened, and what happened since its last report.
#[derive(Default)]
pub struct Role {
    pub correlation: String,
    p: Value,
    pub connections: Vec<Connection>,
    channels: Vec<Channel>,
    consumers: Vec<Consumer>,
    deliveries: SelectAll<BoxStream<'static, (usize, lapin::Result<Delivery>)>>,
    events: SelectAll<BoxStream<'static, Event>>,
    messages: Vec<Value>,
    returned: Vec<Value>,
    pub count: u64,
    put_back: u64,
    left: u32,
    started: i64,
    ended: i64,
    closed: Value,
    error: String,
}

/// A consumer, and what it has not acknowledged yet.
struct Consumer {
    index: Value,
    channel: Channel,
    own: bool,
    open: u64,
    last: u64,
    acknowledged: u64,
}

fn number(fields: &Value, name: &str) -> Result<u64> {
    Ok(fields[name][1].as_str().unwrap_or_default().parse()?)
}

/// Make a call, if it is wanted.
async fn when(wanted: bool, call: impl Future<Output = lapin::Result<()>>) -> lapin::Result<()> {
    if wanted {
        call.await?;
    }
    Ok(())
}

impl Role {
    pub fn new(parameters: &[u8]) -> Self {
        let p = serde_json::from_slice(parameters).unwrap_or_default();
        Self { correlation: format!("{}.{}", *INSTANCE, now()), p, ..Default::default() }
    }

    fn number(&self, name: &str) -> u64 {
        self.p[name].as_u64().unwrap_or(0)
    }

    /// Give the time from one message to the next, if there is a rate.
    fn pause(&self, rate: &str) -> Option<Duration> {
        Duration::from_secs(1).checked_div(self.number(rate) as u32)
    }

    fn hash(&self, body: &[u8]) -> String {
        Some(body).filter(|_| self.p["check"] == "hash").map(sha256).unwrap_or_default()
    }

    fn body(&self, sequence: u64) -> Vec<u8> {
        make_body(self.number("seed"), sequence, self.number("message_bytes") as usize)
    }

    pub fn failed(&self) -> bool {
        !self.closed.is_null() || !self.error.is_empty()
    }

    /// Keep what went wrong first.
    pub fn keep(&mut self, done: Result<()>) {
        if let (Err(error), true) = (done, self.error.is_empty()) {
            self.error = error.to_string();
        }
    }

    /// Keep how the broker closed a channel or a connection, or that one was lost.
    fn heed(&mut self, event: Event) {
        let Event::Error(error) = event else { return };
        match error.kind() {
            ErrorKind::ProtocolError(said) if self.closed.is_null() => {
                let lost = self.connections.iter().any(|one| !one.status().connected());
                let level = if lost { "connection" } else { "channel" };
                self.closed = json!({"level": level, "code": said.get_id(), "text": said.get_message().as_str()});
            }
            _ => self.keep(Err(error.into())),
        }
    }

    /// Wait for something, and take in what comes meanwhile.
    pub async fn attend<T>(&mut self, wanted: impl Future<Output = T>) -> T {
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

    /// Give what is new. A channel is closed for us before we are told why, so who failed waits for the reason.
    pub async fn report(&mut self) -> Value {
        let end = Instant::now() + Duration::from_secs(5);
        while !self.error.is_empty() && self.closed.is_null() && Instant::now() < end {
            self.attend(sleep(Duration::from_millis(1))).await;
        }
        json!({
            "messages": std::mem::take(&mut self.messages), "returned": std::mem::take(&mut self.returned),
            "left": self.left, "started_ns": self.started.to_string(), "ended_ns": self.ended.to_string(),
            "closed": self.closed, "error": if self.closed.is_null() { &self.error } else { "" },
        })
    }

    async fn connect(&mut self) -> Result<Channel> {
        let connection = connect().await?;
        self.events.push(connection.events_listener().boxed());
        let channel = connection.create_channel().await?;
        self.connections.push(connection);
        Ok(channel)
    }

    pub async fn open(&mut self, sends: bool) -> Result<()> {
        for asked in self.p["consumers"].as_array().filter(|_| !sends).cloned().unwrap_or_default() {
            let channel = self.connect().await?;
            self.open_consumer(channel, &asked).await?;
        }
        while sends && self.channels.len() < self.number("num_publishers") as usize {
            let channel = match self.connections.first() {
                Some(connection) => connection.create_channel().await?,
                None => self.connect().await?,
            };
            when(self.p["transactional"] == true, channel.tx_select()).await?;
            if !["transactional", "mandatory", "immediate"].iter().any(|name| self.p[name] == true) {
                channel.confirm_select(Default::default()).await?;
            }
            self.channels.push(channel);
        }
        Ok(())
    }

    /// Publish message by message, the publishers in turn, then wait until the broker has them.
    pub async fn start(&mut self, fields: &Value) -> Result<()> {
        let (first, count) = (number(fields, "FIRST")?, number(fields, "MESSAGE_COUNT")?);
        let (begun, channels) = (Instant::now(), self.channels.clone());
        self.started = now();
        for done in 0..count {
            if let Some(pause) = self.pause("outgoing_rate") {
                sleep_until((begun + pause * done as u32).into()).await;
            }
            for (publisher, channel) in channels.iter().enumerate() {
                self.publish(channel, publisher as u64, first + done).await?;
                if (done + 1) % self.number("tx_batch_size") == 0 {
                    when(self.p["transactional"] == true, channel.tx_commit()).await?;
                }
            }
        }
        for channel in &channels {
            let confirmed = channel.wait_for_confirms().await?;
            when(self.p["transactional"] == true, channel.tx_commit()).await?;
            channel.basic_qos(0, Default::default()).await?;
            for message in confirmed.into_iter().chain(channel.wait_for_confirms().await?) {
                let headers = tag_table(&message.delivery.properties);
                self.returned.push(json!({"code": message.reply_code, "headers": headers}));
            }
        }
        self.ended = now();
        Ok(())
    }

    async fn publish(&mut self, channel: &Channel, publisher: u64, sequence: u64) -> Result<()> {
        let places = self.p["destinations"].as_array().map_or(1, Vec::len);
        let to = &self.p["destinations"][(publisher + sequence) as usize % places];
        let [exchange, key] = ["exchange", "key"].map(|name| to[name].as_str().unwrap_or_default().into());
        let [mandatory, immediate] = ["mandatory", "immediate"].map(|name| self.p[name] == true);
        let bits = BasicPublishOptions { mandatory, immediate };
        let (body, properties) = self.message(publisher, sequence)?;
        drop(channel.basic_publish(exchange, key, bits, &body, properties).await?);
        self.messages.push(json!({"publisher": publisher, "sequence": sequence, "sha256": self.hash(&body)}));
        self.count += 1;
        Ok(())
    }

    fn message(&self, publisher: u64, sequence: u64) -> Result<(Vec<u8>, BasicProperties)> {
        if let Some(envelopes) = self.p["envelopes"].as_array().filter(|envelopes| !envelopes.is_empty()) {
            let text = envelopes[sequence as usize % envelopes.len()].as_str();
            return project(STANDARD.decode(text.unwrap_or_default())?);
        }
        let mut headers = self.p["header_fields"].clone();
        headers["CLIENT_NAME"] = json!(["S", GIVEN["client_name"]]);
        headers["PUBLISHER"] = json!(["I", publisher.to_string()]);
        headers["SEQUENCE"] = json!(["I", sequence.to_string()]);
        headers["SENT_NS"] = json!(["l", now().to_string()]);
        let properties = BasicProperties::default()
            .with_headers(untag_table(&headers))
            .with_correlation_id(self.correlation.as_str().into())
            .with_delivery_mode(if self.p["persistent"] == true { 2 } else { 1 })
            .with_content_type("application/octet-stream".into());
        Ok((self.body(sequence), properties))
    }

    async fn open_consumer(&mut self, channel: Channel, asked: &Value) -> Result<()> {
        let from = &self.p["destinations"][asked["destination"].as_u64().unwrap_or(0) as usize];
        let [queue, exchange, key] = ["queue", "exchange", "key"].map(|name| from[name].as_str().unwrap_or_default());
        let own = queue.is_empty();
        if own {
            let bits = QueueDeclareOptions { exclusive: true, ..Default::default() };
            channel.queue_declare("".into(), bits, Default::default()).await?; // below, no name is this queue
            channel.queue_bind("".into(), exchange.into(), key.into(), Default::default(), Default::default()).await?;
        }
        channel.basic_qos(self.number("prefetch_count") as u16, Default::default()).await?;
        when(self.p["ack_tx"] == true, channel.tx_select()).await?;
        let [no_ack, no_local, exclusive] = ["no_ack", "no_local", "exclusive"].map(|name| self.p[name] == true);
        let bits = BasicConsumeOptions { no_ack, no_local, exclusive, nowait: false };
        let messages = channel.basic_consume(queue.into(), "lab".into(), bits, Default::default()).await?;
        let (at, pause) = (self.consumers.len(), self.pause("inbound_rate"));
        let paced = messages.then(move |message| async move {
            if let Some(pause) = pause {
                sleep(pause).await;
            }
            (at, message)
        });
        self.deliveries.push(paced.boxed());
        let index = asked["index"].clone();
        self.consumers.push(Consumer { index, channel, own, open: 0, last: 0, acknowledged: 0 });
        Ok(())
    }

    /// Look at one delivery and acknowledge it as we were told, or put it back.
    async fn take(&mut self, at: usize, message: lapin::Result<Delivery>) -> Result<()> {
        HEARD.store(now(), Relaxed);
        let message = message?;
        let put_back = !message.redelivered && self.put_back < self.number("requeue_first");
        self.consumers[at].last = message.delivery_tag;
        self.consumers[at].open += u64::from(!put_back && self.p["no_ack"] == false);
        if self.p["ack_first"] == true {
            self.acknowledge(at).await?;
        }
        self.note(at, &message, put_back)?;
        if put_back {
            self.put_back += 1;
            let bits = BasicNackOptions { requeue: true, multiple: false };
            self.consumers[at].channel.basic_nack(message.delivery_tag, bits).await?;
            return Ok(());
        }
        self.count += 1;
        if self.consumers[at].open == self.number("ack_every") {
            self.acknowledge(at).await?;
        }
        Ok(())
    }

    /// Acknowledge what is open; a transaction ends after so many.
    async fn acknowledge(&mut self, at: usize) -> Result<()> {
        let (every, batch) = (self.number("ack_every"), self.number("tx_batch_size"));
        let one = &mut self.consumers[at];
        if one.open > 0 {
            one.channel.basic_ack(one.last, BasicAckOptions { multiple: every != 1 }).await?;
            one.open = 0;
            one.acknowledged += 1;
            if one.acknowledged % batch == 0 {
                when(self.p["ack_tx"] == true, self.consumers[at].channel.tx_commit()).await?;
            }
        }
        Ok(())
    }

    /// List one delivery.
    fn note(&mut self, at: usize, message: &Delivery, put_back: bool) -> Result<()> {
        let (body, headers) = (&message.data, tag_table(&message.properties));
        let sequence = number(&headers, "SEQUENCE").unwrap_or(0);
        let differs = || first_difference(&self.body(sequence), body);
        self.messages.push(json!({
            "consumer": self.consumers[at].index, "redelivered": message.redelivered, "put_back": put_back,
            "arrived_ns": now().to_string(), "length": body.len(), "sha256": self.hash(body), "headers": headers,
            "differs": if self.p["check"] == "hash" { differs() } else { -1 },
            "properties": properties_of(&message.properties)?,
            "body": (self.p["echo"] == true).then(|| STANDARD.encode(body)),
        }));
        Ok(())
    }

    /// Wait for so many messages, or so long; then end the role if this is the last request.
    pub async fn status(&mut self, fields: &Value) -> Result<()> {
        let (enough, end) =
            (number(fields, "WAIT_COUNT")?, Instant::now() + Duration::from_millis(number(fields, "WAIT_MS")?));
        while self.count < enough && !self.failed() && Instant::now() < end {
            self.attend(sleep(Duration::from_millis(1))).await;
        }
        if fields["FINAL"][1] != true {
            return Ok(());
        }
        for one in &self.consumers {
            one.channel.basic_cancel("lab".into(), Default::default()).await?;
        }
        while let Some((at, message)) = self.deliveries.next().await {
            self.take(at, message).await?;
        }
        for at in 0..self.consumers.len() {
            self.acknowledge(at).await?;
            let one = &self.consumers[at];
            when(self.p["ack_tx"] == true, one.channel.tx_commit()).await?;
            one.channel.basic_qos(0, Default::default()).await?; // its answer says that the broker has the acks
            if one.own {
                self.left += one.channel.queue_delete("".into(), Default::default()).await?;
            }
        }
        Ok(())
    }
}
