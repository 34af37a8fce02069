//! The roles: a sender publishes when it is told to, a receiver consumes from when it accepts.
//!
//! lapin hands a returned message out with the confirm that comes after it, so a return that a
//! broker sends after its confirm would stay hidden. Where messages may be returned the channel has
//! no confirms, and the synchronous call that ends every batch is the barrier.

use crate::{connect, message::*, GIVEN, HEARD, INSTANCE};
use base64::{engine::general_purpose::STANDARD, Engine as _};
use futures_lite::StreamExt;
use lapin::{message::Delivery, options::*, BasicProperties, Channel, Connection, ErrorKind, Event};
use serde_json::{json, Value};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, sleep_until};

/// The connections of a role, its publishers' channels, its consumers, and who watches for a close.
#[derive(Default)]
pub struct Parts {
    pub connections: Vec<Connection>,
    channels: Vec<Channel>,
    consumers: Vec<(Channel, JoinHandle<Consumer>)>,
    watchers: JoinSet<()>,
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

pub struct Role {
    pub correlation: String,
    p: Value,
    count: AtomicU64,
    put_back: AtomicU64,
    told: Mutex<Value>, // the report as far as it goes
}

fn number(fields: &Value, name: &str) -> Result<u64> {
    Ok(fields[name][1].as_str().unwrap_or_default().parse()?)
}

impl Role {
    pub fn new(parameters: &[u8]) -> Self {
        let told = json!({"messages": [], "returned": [], "left": 0, "closed": null, "error": "",
            "started_ns": "0", "ended_ns": "0"});
        Self {
            correlation: format!("{}.{}", *INSTANCE, now()),
            p: serde_json::from_slice(parameters).unwrap_or_default(),
            count: AtomicU64::new(0),
            put_back: AtomicU64::new(0),
            told: Mutex::new(told),
        }
    }

    fn told(&self) -> MutexGuard<'_, Value> {
        self.told.lock().unwrap()
    }

    fn list(&self, name: &str, item: Value) {
        if let Some(list) = self.told()[name].as_array_mut() {
            list.push(item);
        }
    }

    fn is(&self, name: &str) -> bool {
        self.p[name] == true
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

    /// Make a call if a parameter says so.
    async fn when(&self, name: &str, call: impl Future<Output = lapin::Result<()>>) -> Result<()> {
        if self.is(name) {
            call.await?;
        }
        Ok(())
    }

    pub fn failed(&self) -> bool {
        let told = self.told();
        !told["closed"].is_null() || told["error"] != ""
    }

    /// Give how many messages there were, and what is new.
    pub fn report(&self, parts: &Parts) -> (u64, Value) {
        let mut told = self.told();
        if !told["closed"].is_null() {
            let lost = parts.connections.iter().any(|one| !one.status().connected());
            told["closed"]["level"] = if lost { "connection" } else { "channel" }.into();
        }
        let report = std::mem::replace(&mut *told, json!({"messages": [], "returned": []}));
        for name in ["left", "closed", "error", "started_ns", "ended_ns"] {
            told[name] = report[name].clone();
        }
        (self.count.load(Relaxed), report)
    }

    /// Keep what went wrong. A channel is closed for us before we are told why, so wait for the reason.
    pub async fn keep(&self, done: Result<()>) {
        let Err(error) = done else { return };
        self.until(u64::MAX, Duration::from_secs(5)).await;
        if !self.failed() {
            self.told()["error"] = error.to_string().into();
        }
    }

    /// Keep how the broker closed a channel or a connection, or how one was lost.
    fn heed(&self, event: Event) {
        let Event::Error(error) = event else { return };
        let mut told = self.told();
        match error.kind() {
            _ if !told["closed"].is_null() => {}
            ErrorKind::ProtocolError(said) => {
                told["closed"] = json!({"code": said.get_id(), "text": said.get_message().as_str()});
            }
            _ => told["error"] = error.to_string().into(),
        }
    }

    /// Wait until there are so many messages, or a failure, or so long.
    async fn until(&self, enough: u64, limit: Duration) {
        let end = Instant::now() + limit;
        while self.count.load(Relaxed) < enough && !self.failed() && Instant::now() < end {
            sleep(Duration::from_millis(1)).await;
        }
    }

    async fn connect(self: &Arc<Self>, parts: &mut Parts) -> Result<Channel> {
        let connection = connect().await?;
        let role = self.clone();
        parts.watchers.spawn(connection.events_listener().for_each(move |event| role.heed(event)));
        let channel = connection.create_channel().await?;
        parts.connections.push(connection);
        Ok(channel)
    }

    pub async fn open(self: &Arc<Self>, parts: &mut Parts, sends: bool) -> Result<()> {
        for asked in self.p["consumers"].as_array().into_iter().flatten().filter(|_| !sends) {
            let channel = self.connect(parts).await?;
            parts.consumers.push((channel.clone(), self.open_consumer(channel, asked).await?));
        }
        for index in 0..if sends { self.number("num_publishers") } else { 0 } {
            let channel = match index {
                0 => self.connect(parts).await?,
                _ => parts.connections[0].create_channel().await?,
            };
            self.when("transactional", channel.tx_select()).await?;
            if !["transactional", "mandatory", "immediate"].iter().any(|name| self.is(name)) {
                channel.confirm_select(Default::default()).await?;
            }
            parts.channels.push(channel);
        }
        Ok(())
    }

    /// Publish message by message, the publishers in turn, then wait until the broker has them.
    pub async fn start(&self, parts: &Parts, fields: &Value) -> Result<()> {
        let (first, count) = (number(fields, "FIRST")?, number(fields, "MESSAGE_COUNT")?);
        let begun = Instant::now();
        self.told()["started_ns"] = now().to_string().into();
        for done in 0..count {
            if let Some(pause) = self.pause("outgoing_rate") {
                sleep_until((begun + pause * done as u32).into()).await;
            }
            for (publisher, channel) in parts.channels.iter().enumerate() {
                self.publish(channel, publisher as u64, first + done).await?;
                if (done + 1) % self.number("tx_batch_size") == 0 {
                    self.when("transactional", channel.tx_commit()).await?;
                }
            }
        }
        for channel in &parts.channels {
            let confirmed = channel.wait_for_confirms().await?;
            self.when("transactional", channel.tx_commit()).await?;
            channel.basic_qos(0, Default::default()).await?;
            for message in confirmed.into_iter().chain(channel.wait_for_confirms().await?) {
                let headers = tag_table(&message.delivery.properties);
                self.list("returned", json!({"code": message.reply_code, "headers": headers}));
            }
        }
        self.told()["ended_ns"] = now().to_string().into();
        Ok(())
    }

    async fn publish(&self, channel: &Channel, publisher: u64, sequence: u64) -> Result<()> {
        let places = self.p["destinations"].as_array().map_or(1, Vec::len);
        let to = &self.p["destinations"][(publisher + sequence) as usize % places];
        let word = |name: &str| to[name].as_str().unwrap_or_default().into();
        let bits = BasicPublishOptions { mandatory: self.is("mandatory"), immediate: self.is("immediate") };
        let (body, properties) = self.message(publisher, sequence)?;
        drop(channel.basic_publish(word("exchange"), word("key"), bits, &body, properties).await?);
        self.list("messages", json!({"publisher": publisher, "sequence": sequence, "sha256": self.hash(&body)}));
        self.count.fetch_add(1, Relaxed);
        Ok(())
    }

    fn message(&self, publisher: u64, sequence: u64) -> Result<(Vec<u8>, BasicProperties)> {
        if let Some(envelopes) = self.p["envelopes"].as_array().filter(|envelopes| !envelopes.is_empty()) {
            let text = envelopes[sequence as usize % envelopes.len()].as_str();
            let body = STANDARD.decode(text.unwrap_or_default())?;
            let properties = project(&body)?;
            return Ok((body, properties));
        }
        let mut headers = self.p["header_fields"].clone();
        headers["CLIENT_NAME"] = json!(["S", GIVEN["client_name"]]);
        headers["PUBLISHER"] = json!(["I", publisher.to_string()]);
        headers["SEQUENCE"] = json!(["I", sequence.to_string()]);
        headers["SENT_NS"] = json!(["l", now().to_string()]);
        let properties = BasicProperties::default()
            .with_headers(untag_table(&headers))
            .with_correlation_id(self.correlation.as_str().into())
            .with_delivery_mode(if self.is("persistent") { 2 } else { 1 })
            .with_content_type("application/octet-stream".into());
        Ok((self.body(sequence), properties))
    }

    fn body(&self, sequence: u64) -> Vec<u8> {
        make_body(self.number("seed"), sequence, self.number("message_bytes") as usize)
    }

    async fn open_consumer(self: &Arc<Self>, channel: Channel, asked: &Value) -> Result<JoinHandle<Consumer>> {
        let from = &self.p["destinations"][asked["destination"].as_u64().unwrap_or(0) as usize];
        let [queue, exchange, key] = ["queue", "exchange", "key"].map(|name| from[name].as_str().unwrap_or_default());
        if queue.is_empty() {
            let bits = QueueDeclareOptions { exclusive: true, ..Default::default() };
            channel.queue_declare("".into(), bits, Default::default()).await?; // below, no name is this queue
            channel.queue_bind("".into(), exchange.into(), key.into(), Default::default(), Default::default()).await?;
        }
        channel.basic_qos(self.number("prefetch_count") as u16, Default::default()).await?;
        self.when("ack_tx", channel.tx_select()).await?;
        let [no_ack, no_local, exclusive] = ["no_ack", "no_local", "exclusive"].map(|name| self.is(name));
        let bits = BasicConsumeOptions { no_ack, no_local, exclusive, nowait: false };
        let messages = channel.basic_consume(queue.into(), "lab".into(), bits, Default::default()).await?;
        let (index, own) = (asked["index"].clone(), queue.is_empty());
        let one = Consumer { index, channel, own, open: 0, last: 0, acknowledged: 0 };
        Ok(tokio::spawn(self.clone().consume(one, messages)))
    }

    async fn consume(self: Arc<Self>, mut one: Consumer, mut messages: lapin::Consumer) -> Consumer {
        while let Some(message) = messages.next().await {
            HEARD.store(now(), Relaxed);
            self.keep(async { self.take(&mut one, message?).await }.await).await;
            if let Some(pause) = self.pause("inbound_rate") {
                sleep(pause).await;
            }
        }
        one
    }

    /// Look at one delivery and acknowledge it as we were told, or put it back.
    async fn take(&self, one: &mut Consumer, message: Delivery) -> Result<()> {
        let put_back = !message.redelivered && self.put_back.fetch_add(1, Relaxed) < self.number("requeue_first");
        one.last = message.delivery_tag;
        one.open += u64::from(!put_back && !self.is("no_ack"));
        if self.is("ack_first") {
            self.acknowledge(one).await?;
        }
        self.note(&one.index, &message, put_back)?;
        if put_back {
            let bits = BasicNackOptions { requeue: true, multiple: false };
            one.channel.basic_nack(message.delivery_tag, bits).await?;
        } else if one.open == self.number("ack_every") {
            self.acknowledge(one).await?;
        }
        Ok(())
    }

    /// Acknowledge what is open; a transaction ends after so many.
    async fn acknowledge(&self, one: &mut Consumer) -> Result<()> {
        if one.open == 0 {
            return Ok(());
        }
        let bits = BasicAckOptions { multiple: self.number("ack_every") != 1 };
        one.channel.basic_ack(one.last, bits).await?;
        one.open = 0;
        one.acknowledged += 1;
        if one.acknowledged % self.number("tx_batch_size") == 0 {
            self.when("ack_tx", one.channel.tx_commit()).await?;
        }
        Ok(())
    }

    /// List one delivery.
    fn note(&self, index: &Value, message: &Delivery, put_back: bool) -> Result<()> {
        let (body, headers) = (&message.data, tag_table(&message.properties));
        let sequence = number(&headers, "SEQUENCE").unwrap_or(0);
        let differs = || first_difference(&self.body(sequence), body);
        let listed = json!({
            "consumer": index, "redelivered": message.redelivered, "put_back": put_back, "length": body.len(),
            "arrived_ns": now().to_string(), "sha256": self.hash(body), "headers": headers,
            "differs": if self.p["check"] == "hash" { differs() } else { -1 },
            "properties": properties_of(&message.properties)?,
            "body": self.is("echo").then(|| STANDARD.encode(body)),
        });
        self.list("messages", listed);
        self.count.fetch_add(u64::from(!put_back), Relaxed);
        Ok(())
    }

    /// Wait for so many messages, or so long; then end the role if this is the last request.
    pub async fn status(&self, parts: &mut Parts, fields: &Value) -> Result<()> {
        let limit = Duration::from_millis(number(fields, "WAIT_MS")?);
        self.until(number(fields, "WAIT_COUNT")?, limit).await;
        if fields["FINAL"][1] != true {
            return Ok(());
        }
        for (channel, task) in parts.consumers.drain(..) {
            channel.basic_cancel("lab".into(), Default::default()).await?;
            let mut one = task.await?;
            self.acknowledge(&mut one).await?;
            self.when("ack_tx", channel.tx_commit()).await?;
            channel.basic_qos(0, Default::default()).await?; // its answer says that the broker has the acks
            if one.own {
                let left = channel.queue_delete("".into(), Default::default()).await?;
                let mut told = self.told();
                told["left"] = (told["left"].as_u64().unwrap_or(0) + u64::from(left)).into();
            }
        }
        Ok(())
    }
}
