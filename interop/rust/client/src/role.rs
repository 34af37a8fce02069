//! The roles: a sender publishes when it is told to, a receiver consumes from when it accepts.
//!
//! lapin hands a returned message out with the confirm that comes after it, so a return that a
//! broker sends after its confirm would stay hidden. Where messages may be returned the channel has
//! no confirms, and the synchronous call that ends every batch is the barrier.

use crate::message::{first_difference, make_body, now, project, properties_of, sha256, tag_table, untag_table};
use crate::{message::Result, open, Client};
use base64::{engine::general_purpose::STANDARD, Engine as _};
use futures_lite::StreamExt;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicPublishOptions, QueueDeclareOptions,
};
use lapin::{BasicProperties, Channel, Connection, ConnectionStatus, Error, ErrorKind, Event};
use serde_json::{json, Value};
use std::sync::atomic::{AtomicU64, Ordering};
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
    queue: String,
    own: bool,
    open: u64,
    last: u64,
    acknowledged: u64,
}

/// What happened since the last report, and how the connections are.
#[derive(Default)]
struct Told {
    messages: Vec<Value>,
    returned: Vec<Value>,
    count: u64,
    left: u32,
    started: i64,
    ended: i64,
    closed: Option<Value>,
    error: String,
    statuses: Vec<ConnectionStatus>,
}

pub struct Role {
    pub correlation: String,
    client: Arc<Client>,
    p: Value,
    put_back: AtomicU64,
    told: Mutex<Told>,
}

fn number(fields: &Value, name: &str) -> Result<u64> {
    Ok(fields[name][1].as_str().unwrap_or_default().parse()?)
}

impl Role {
    pub fn new(client: Arc<Client>, parameters: &[u8]) -> Self {
        let correlation = format!("{}.{}", client.instance, now());
        let p = serde_json::from_slice(parameters).unwrap_or_default();
        Self { correlation, client, p, put_back: AtomicU64::new(0), told: Mutex::default() }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    fn is(&self, name: &str) -> bool {
        self.p[name] == true
    }

    fn number(&self, name: &str) -> u64 {
        self.p[name].as_u64().unwrap_or(0)
    }

    fn list(&self, name: &str) -> &[Value] {
        self.p[name].as_array().map_or(&[], Vec::as_slice)
    }

    fn seconds_of(&self, rate: &str, messages: u64) -> Option<Duration> {
        let rate = self.p[rate].as_f64().filter(|rate| *rate > 0.0)?;
        Some(Duration::from_secs_f64(messages as f64 / rate))
    }

    fn hash(&self, body: &[u8]) -> String {
        Some(body).filter(|_| self.p["check"] == "hash").map(sha256).unwrap_or_default()
    }

    pub fn failed(&self) -> bool {
        let told = self.told();
        told.closed.is_some() || !told.error.is_empty()
    }

    pub fn report(&self) -> (u64, Value) {
        let mut told = self.told();
        let report = json!({
            "messages": std::mem::take(&mut told.messages), "returned": std::mem::take(&mut told.returned),
            "left": told.left, "started_ns": told.started.to_string(), "ended_ns": told.ended.to_string(),
            "closed": told.closed, "error": told.error,
        });
        (told.count, report)
    }

    /// Keep what went wrong. A channel in a wrong state is what a close by the broker looks like
    /// while it is under way: wait for what the broker said.
    pub async fn keep(&self, done: Result<()>) {
        let Err(error) = done else { return };
        let known = error.downcast_ref::<Error>();
        if known.is_some_and(|error| matches!(error.kind(), ErrorKind::InvalidChannelState(..))) {
            self.until(u64::MAX, Duration::from_secs(5)).await;
        }
        if let Some(error) = known {
            self.note_close(error);
        }
        if !self.failed() {
            self.told().error = error.to_string();
        }
    }

    /// Keep how the broker closed, if this is what it said.
    fn note_close(&self, error: &Error) {
        let ErrorKind::ProtocolError(said) = error.kind() else { return };
        let mut told = self.told();
        let gone = told.statuses.iter().any(|one| !one.connected()); // Broker-J does with 312
        let level = if gone || error.is_amqp_hard_error() { "connection" } else { "channel" };
        let closed = json!({"level": level, "code": said.get_id(), "text": said.get_message().as_str()});
        told.closed.get_or_insert(closed);
    }

    /// Wait until there are so many messages, or a failure, or so long.
    async fn until(&self, enough: u64, limit: Duration) {
        let end = Instant::now() + limit;
        while self.told().count < enough && !self.failed() && Instant::now() < end {
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Open a connection and a channel; what the broker says when it closes is noted.
    async fn connect(self: &Arc<Self>, parts: &mut Parts) -> Result<Channel> {
        let connection = open(&self.client.given).await?;
        self.told().statuses.push(connection.status().clone());
        let (role, mut events) = (self.clone(), Box::pin(connection.events_listener()));
        parts.watchers.spawn(async move {
            while let Some(event) = events.next().await {
                if let Event::Error(error) = event {
                    role.note_close(&error);
                }
            }
        });
        let channel = connection.create_channel().await?;
        parts.connections.push(connection);
        Ok(channel)
    }

    pub async fn open(self: &Arc<Self>, parts: &mut Parts, sends: bool) -> Result<()> {
        for asked in self.list("consumers").iter().filter(|_| !sends) {
            let channel = self.connect(parts).await?;
            parts.consumers.push((channel.clone(), self.open_consumer(channel, asked).await?));
        }
        while sends && parts.channels.len() < self.number("num_publishers") as usize {
            let channel = match parts.connections.first() {
                Some(connection) => connection.create_channel().await?,
                None => self.connect(parts).await?,
            };
            if self.is("transactional") {
                channel.tx_select().await?;
            } else if !self.is("mandatory") && !self.is("immediate") {
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
        self.told().started = now();
        for done in 0..count {
            if let Some(due) = self.seconds_of("outgoing_rate", done) {
                sleep_until((begun + due).into()).await;
            }
            for (publisher, channel) in parts.channels.iter().enumerate() {
                self.publish(channel, publisher as u64, first + done).await?;
                if self.is("transactional") && (done + 1) % self.number("tx_batch_size") == 0 {
                    channel.tx_commit().await?;
                }
            }
        }
        for channel in &parts.channels {
            let confirmed = channel.wait_for_confirms().await?;
            if self.is("transactional") {
                channel.tx_commit().await?;
            }
            channel.basic_qos(0, Default::default()).await?;
            for message in confirmed.into_iter().chain(channel.wait_for_confirms().await?) {
                let headers = tag_table(&message.delivery.properties);
                let returned = json!({"code": message.reply_code, "headers": headers});
                self.told().returned.push(returned);
            }
        }
        self.told().ended = now();
        Ok(())
    }

    async fn publish(&self, channel: &Channel, publisher: u64, sequence: u64) -> Result<()> {
        let places = self.list("destinations");
        let to = &places[(publisher + sequence) as usize % places.len()];
        let word = |name: &str| to[name].as_str().unwrap_or_default().into();
        let bits = BasicPublishOptions { mandatory: self.is("mandatory"), immediate: self.is("immediate") };
        let (body, properties) = self.message(publisher, sequence)?;
        drop(channel.basic_publish(word("exchange"), word("key"), bits, &body, properties).await?);
        let sent = json!({"publisher": publisher, "sequence": sequence, "sha256": self.hash(&body)});
        let mut told = self.told();
        told.messages.push(sent);
        told.count += 1;
        Ok(())
    }

    fn message(&self, publisher: u64, sequence: u64) -> Result<(Vec<u8>, BasicProperties)> {
        let envelopes = self.list("envelopes");
        if !envelopes.is_empty() {
            let text = envelopes[sequence as usize % envelopes.len()].as_str();
            let body = STANDARD.decode(text.unwrap_or_default())?;
            let properties = project(&body)?;
            return Ok((body, properties));
        }
        let mut headers = self.p["header_fields"].clone();
        headers["CLIENT_NAME"] = json!(["S", self.client.given["client_name"]]);
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
        let word = |name: &str| from[name].as_str().unwrap_or_default();
        let (mut queue, own) = (word("queue").to_string(), word("queue").is_empty());
        if own {
            let bits = QueueDeclareOptions { exclusive: true, ..Default::default() };
            let made = channel.queue_declare("".into(), bits, Default::default()).await?;
            queue = made.name().to_string();
            let [bound, exchange, key] = [&queue, word("exchange"), word("key")].map(|text| text.into());
            channel.queue_bind(bound, exchange, key, Default::default(), Default::default()).await?;
        }
        if self.number("prefetch_count") > 0 {
            channel.basic_qos(self.number("prefetch_count") as u16, Default::default()).await?;
        }
        if self.is("ack_tx") {
            channel.tx_select().await?;
        }
        let [no_ack, no_local, exclusive] = ["no_ack", "no_local", "exclusive"].map(|name| self.is(name));
        let bits = BasicConsumeOptions { no_ack, no_local, exclusive, nowait: false };
        let name = queue.as_str().into();
        let messages = channel.basic_consume(name, "lab".into(), bits, Default::default()).await?;
        let index = asked["index"].clone();
        let one = Consumer { index, channel, queue, own, open: 0, last: 0, acknowledged: 0 };
        Ok(tokio::spawn(self.clone().consume(one, messages)))
    }

    async fn consume(self: Arc<Self>, mut one: Consumer, mut messages: lapin::Consumer) -> Consumer {
        while let Some(message) = messages.next().await {
            self.client.heard.store(now(), Ordering::Relaxed);
            let taken = match message {
                Ok(message) => self.take(&mut one, message).await,
                Err(error) => Err(error.into()),
            };
            self.keep(taken).await;
            if let Some(rest) = self.seconds_of("inbound_rate", 1) {
                sleep(rest).await;
            }
        }
        one
    }

    /// Look at one delivery and acknowledge it as we were told, or put it back.
    async fn take(&self, one: &mut Consumer, message: Delivery) -> Result<()> {
        let limit = self.number("requeue_first");
        let put_back = !message.redelivered && self.put_back.fetch_add(1, Ordering::Relaxed) < limit;
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
        if self.is("ack_tx") && one.acknowledged % self.number("tx_batch_size") == 0 {
            one.channel.tx_commit().await?;
        }
        Ok(())
    }

    /// List one delivery.
    fn note(&self, index: &Value, message: &Delivery, put_back: bool) -> Result<()> {
        let body = &message.data;
        let headers = tag_table(&message.properties);
        let sequence = headers["SEQUENCE"][1].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut listed = json!({
            "consumer": index, "redelivered": message.redelivered, "put_back": put_back,
            "arrived_ns": now().to_string(), "length": body.len(), "sha256": self.hash(body), "differs": -1,
            "properties": properties_of(&message.properties)?, "headers": headers,
        });
        if self.p["check"] == "hash" {
            listed["differs"] = first_difference(&self.body(sequence), body).into();
        }
        if self.is("echo") {
            listed["body"] = STANDARD.encode(body).into();
        }
        let mut told = self.told();
        told.messages.push(listed);
        told.count += u64::from(!put_back);
        Ok(())
    }

    /// Wait for so many messages, or so long; then end the role if this is the last request.
    pub async fn status(&self, parts: &mut Parts, fields: &Value, last: bool) -> Result<()> {
        let limit = Duration::from_millis(number(fields, "WAIT_MS")?);
        self.until(number(fields, "WAIT_COUNT")?, limit).await;
        if !last {
            return Ok(());
        }
        for (channel, task) in parts.consumers.drain(..) {
            channel.basic_cancel("lab".into(), Default::default()).await?;
            let mut one = task.await?;
            self.acknowledge(&mut one).await?;
            if self.is("ack_tx") {
                channel.tx_commit().await?;
            }
            channel.basic_qos(0, Default::default()).await?; // its answer says that the broker has the acks
            if one.own {
                self.told().left += channel.queue_delete(one.queue.into(), Default::default()).await?;
            }
        }
        Ok(())
    }
}
