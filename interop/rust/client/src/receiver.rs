//! The receiver: consumers with a connection each, ack modes, and the report of what arrived.

use crate::message::{first_difference, integer, now, runs, sha256, tag_table, text, Digest, Fault, Parameters};
use crate::{open, Client, Report};
use base64::Engine as _;
use futures_lite::StreamExt;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, QueueBindOptions,
    QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{Channel, Connection};
use serde_json::{json, Map, Value};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

pub struct Receiver {
    client: Arc<Client>,
    p: Parameters,
    consumers: tokio::sync::Mutex<Vec<Consumer>>,
    seen: Mutex<Seen>,
    changed: Notify,
}

struct Consumer {
    connection: Connection,
    channel: Channel,
    tag: String,
    own: Option<String>,
    task: Option<JoinHandle<Open>>,
}

/// What a consumer has not acknowledged, or not committed, yet.
#[derive(Default)]
struct Open {
    count: i64,
    last: u64,
}

#[derive(Default)]
struct Seen {
    count: i64,
    streams: Vec<Stream>,
    unexpected: Vec<Value>,
    echo: Vec<Value>,
    first: i64,
    last: i64,
    latency: std::collections::BTreeMap<i64, i64>,
    left: u32,
    fault: Fault,
}

struct Stream {
    consumer: i64,
    sender: String,
    correlation_id: String,
    publisher: i64,
    received: Vec<i64>,
    redelivered: Vec<i64>,
    altered: Vec<Value>,
    digest: Digest,
}

impl Receiver {
    pub async fn open(client: Arc<Client>, p: Parameters) -> Result<Arc<Self>, Report> {
        let receiver = Arc::new(Self { client, p, consumers: Default::default(), seen: Mutex::default(), changed: Notify::new() });
        if receiver.p.text("pattern", "p2p") == "none" || !receiver.p.flag("consumer_out_active", true) {
            return Ok(receiver);
        }
        for place in receiver.p.list("consumers") {
            if let Err(error) = receiver.begin(place).await {
                receiver.fail(&error, None);
                receiver.close().await;
                return Err(receiver.report());
            }
        }
        Ok(receiver)
    }

    async fn begin(self: &Arc<Self>, place: &Value) -> lapin::Result<()> {
        let index = place["index"].as_i64().unwrap_or(0);
        let from = &self.p.list("destinations")[place["destination"].as_u64().unwrap_or(0) as usize];
        let word = |name: &str| from[name].as_str().unwrap_or_default().to_string();
        let connection = open(&self.client.url).await?;
        let channel = connection.create_channel().await?;
        let prefetch = self.p.number("prefetch_count", 0);
        if prefetch > 0 {
            channel.basic_qos(prefetch as u16, BasicQosOptions::default()).await?;
        }
        let mut own = None;
        if self.p.text("pattern", "p2p") == "pubsub" {
            let declare = QueueDeclareOptions { exclusive: true, ..Default::default() };
            let queue = channel.queue_declare("".into(), declare, FieldTable::default()).await?.name().clone();
            let bind = QueueBindOptions::default();
            channel.queue_bind(queue.clone(), word("exchange").into(), word("key").into(), bind, FieldTable::default()).await?;
            own = Some(queue.as_str().to_string());
        }
        if self.p.text("ack_mode", "auto") == "tx" {
            channel.tx_select().await?;
        }
        let bits = BasicConsumeOptions {
            no_ack: self.p.text("ack_mode", "auto") == "no_ack", no_local: self.p.flag("no_local", false),
            exclusive: self.p.flag("exclusive", false), nowait: false,
        };
        let tag = format!("c{index}");
        let queue = own.clone().unwrap_or_else(|| word("queue"));
        let messages = channel.basic_consume(queue.into(), tag.as_str().into(), bits, FieldTable::default()).await?;
        let task = tokio::spawn(self.clone().run(index, channel.clone(), messages));
        self.consumers.lock().await.push(Consumer { connection, channel, tag, own, task: Some(task) });
        Ok(())
    }

    async fn run(self: Arc<Self>, index: i64, channel: Channel, mut messages: lapin::Consumer) -> Open {
        let (mut open, mut requeued, rate) = (Open::default(), 0, self.p.rate("inbound_rate"));
        while let Some(message) = messages.next().await {
            let arrived = now();
            self.client.touch();
            let taken = match message {
                Ok(message) => self.take(index, &channel, message, arrived, &mut open, &mut requeued).await,
                Err(error) => Err(error),
            };
            if let Err(error) = taken {
                self.fail(&error, None);
            }
            if rate > 0.0 {
                sleep(Duration::from_secs_f64(1.0 / rate)).await;
            }
        }
        open
    }

    async fn take(
        &self, index: i64, channel: &Channel, message: Delivery, arrived: i64, open: &mut Open, requeued: &mut i64,
    ) -> lapin::Result<()> {
        let one = BasicAckOptions::default();
        if !message.redelivered && *requeued < self.p.number("requeue_first", 0) {
            *requeued += 1;
            self.note(index, &message, arrived, false);
            return channel.basic_nack(message.delivery_tag, BasicNackOptions { requeue: true, multiple: false }).await;
        }
        let mode = self.p.text("ack_mode", "auto");
        if mode == "pre_ack" {
            channel.basic_ack(message.delivery_tag, one).await?;
        }
        self.note(index, &message, arrived, true);
        if mode == "auto" || mode == "tx" {
            channel.basic_ack(message.delivery_tag, one).await?;
        }
        *open = Open { count: open.count + 1, last: message.delivery_tag };
        let batch = if mode == "tx" { self.p.number("tx_batch_size", 100) } else { 10 };
        if (mode == "tx" || mode == "dups_ok") && open.count == batch {
            self.settle(channel, open).await?;
        }
        Ok(())
    }

    /// Acknowledge, or commit, what is open.
    async fn settle(&self, channel: &Channel, open: &mut Open) -> lapin::Result<()> {
        if open.count == 0 {
            return Ok(());
        }
        open.count = 0;
        match self.p.text("ack_mode", "auto").as_str() {
            "tx" => channel.tx_commit().await,
            "client" | "dups_ok" => channel.basic_ack(open.last, BasicAckOptions { multiple: true }).await,
            _ => Ok(()),
        }
    }

    /// Keep what a message was; one that is put back is not counted.
    fn note(&self, index: i64, message: &Delivery, arrived: i64, counted: bool) {
        let headers = message.properties.headers().clone().unwrap_or_default();
        let mut seen = self.seen.lock().unwrap();
        if seen.first == 0 {
            seen.first = arrived;
        }
        seen.last = arrived;
        seen.count += i64::from(counted);
        match (text(&headers, "CLIENT_NAME"), integer(&headers, "SEQUENCE")) {
            _ if self.p.flag("echo", false) => seen.echo.push(echoed(index, message, &headers)),
            _ if !counted => {}
            (Some(sender), Some(sequence)) => {
                self.add(&mut seen, index, sender, sequence, &headers, message);
                if let (true, Some(sent)) = (self.p.flag("stamp", false), integer(&headers, "SENT_NS")) {
                    let shift: i64 = self.p.text("clock_shift_ns", "0").parse().unwrap_or(0);
                    seen.measure(arrived - sent + shift);
                }
            }
            _ => seen.unexpected.push(json!([index, message.data.len(), sha256(&message.data)])),
        }
        self.changed.notify_waiters();
    }

    fn add(&self, seen: &mut Seen, consumer: i64, sender: String, sequence: i64, headers: &FieldTable, message: &Delivery) {
        let publisher = integer(headers, "PUBLISHER").unwrap_or(0);
        let correlation_id = message.properties.correlation_id().as_ref().map(|id| id.as_str().to_string()).unwrap_or_default();
        let is_it = |one: &Stream| {
            one.consumer == consumer && one.publisher == publisher && one.sender == sender && one.correlation_id == correlation_id
        };
        let check = self.p.text("check", "hash");
        let at = seen.streams.iter().position(is_it).unwrap_or_else(|| {
            let digest = Digest::new(&check);
            seen.streams.push(Stream { consumer, sender, correlation_id, publisher, received: vec![], redelivered: vec![], altered: vec![], digest });
            seen.streams.len() - 1
        });
        let stream = &mut seen.streams[at];
        stream.received.push(sequence);
        if message.redelivered {
            stream.redelivered.push(sequence);
        }
        if check != "hash" {
            return;
        }
        stream.digest.add(&message.data);
        if let Some(offset) = first_difference(&message.data, &self.p.body(sequence)) {
            stream.altered.push(json!([sequence, offset, message.data.len(), sha256(&message.data)]));
        }
    }

    pub async fn status(&self, wanted: i64, milliseconds: i64, last: bool) -> (Report, bool) {
        let enough = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let done = {
                    let seen = self.seen.lock().unwrap();
                    seen.count >= wanted || seen.fault.is_set()
                };
                if done {
                    return;
                }
                changed.await;
            }
        };
        let _ = timeout(Duration::from_millis(milliseconds as u64), enough).await; // the time may run out
        if last {
            self.finish().await;
        }
        (self.report(), last)
    }

    async fn finish(&self) {
        for one in self.consumers.lock().await.iter_mut() {
            if let Err(error) = self.finish_one(one).await {
                self.fail(&error, Some(&one.connection));
            }
        }
        self.close().await;
    }

    /// Cancel, take in what was on its way, settle it and drop an own queue.
    async fn finish_one(&self, one: &mut Consumer) -> lapin::Result<()> {
        one.channel.basic_cancel(one.tag.as_str().into(), BasicCancelOptions::default()).await?;
        if let Some(task) = one.task.take() {
            let mut open = task.await.unwrap_or_default();
            self.settle(&one.channel, &mut open).await?;
        }
        one.channel.basic_qos(0, BasicQosOptions::default()).await?; // the broker has the acknowledgements then
        if let Some(queue) = &one.own {
            let left = one.channel.queue_delete(queue.as_str().into(), QueueDeleteOptions::default()).await?;
            self.seen.lock().unwrap().left += left;
        }
        Ok(())
    }

    async fn close(&self) {
        for one in self.consumers.lock().await.iter() {
            let _ = one.connection.close(200, "done".into()).await; // the broker may have closed it already
        }
    }

    fn fail(&self, error: &lapin::Error, connection: Option<&Connection>) {
        self.seen.lock().unwrap().fault.note(error, connection);
        self.changed.notify_waiters();
    }

    fn report(&self) -> Report {
        let seen = self.seen.lock().unwrap();
        let streams = seen.streams.iter().map(|one| {
            json!({
                "consumer": one.consumer, "sender": one.sender, "correlation_id": one.correlation_id, "publisher": one.publisher,
                "received": runs(&one.received), "digest": one.digest.text(), "altered": one.altered, "redelivered": runs(&one.redelivered),
            })
        });
        let stamp = |at: i64| if at == 0 { String::new() } else { at.to_string() };
        let mut body = json!({
            "role": "receiver", "streams": streams.collect::<Vec<_>>(), "unexpected": seen.unexpected, "left": seen.left,
            "closed": seen.fault.closed, "error": seen.fault.error, "first_ns": stamp(seen.first), "last_ns": stamp(seen.last),
            "latency": seen.latency,
        });
        if self.p.flag("echo", false) {
            body["echo"] = json!(seen.echo);
        }
        Report { count: seen.count as i32, correlation_id: None, body }
    }
}

impl Seen {
    fn measure(&mut self, latency: i64) {
        let drop = 1 << (64 - latency.unsigned_abs().leading_zeros()).saturating_sub(11);
        *self.latency.entry(latency / drop * drop).or_default() += 1;
    }
}

fn echoed(consumer: i64, message: &Delivery, headers: &FieldTable) -> Value {
    let from = &message.properties;
    let texts = [
        ("content_type", from.content_type()), ("content_encoding", from.content_encoding()), ("correlation_id", from.correlation_id()),
        ("reply_to", from.reply_to()), ("expiration", from.expiration()), ("message_id", from.message_id()), ("type", from.kind()),
        ("user_id", from.user_id()), ("app_id", from.app_id()),
    ];
    let mut properties = Map::new();
    for (name, value) in texts {
        if let Some(value) = value {
            properties.insert(name.into(), json!(value.as_str()));
        }
    }
    for (name, value) in [("delivery_mode", from.delivery_mode()), ("priority", from.priority())] {
        if let Some(value) = value {
            properties.insert(name.into(), json!(value));
        }
    }
    let body = base64::engine::general_purpose::STANDARD.encode(&message.data);
    json!({"consumer": consumer, "body": body, "redelivered": message.redelivered, "properties": properties, "headers": tag_table(headers)})
}
