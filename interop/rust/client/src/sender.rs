//! The sender: publishers with a channel each, barriers, and the report of what was sent.
//!
//! lapin hands a returned message out with the confirm that comes after it, so a return that a
//! broker sends after its confirm would stay hidden. Where messages may be returned the channel has
//! no confirms, and the synchronous call that ends every batch is the barrier.

use crate::message::{integer, now, runs, text, untag_table, Digest, Fault, Parameters};
use crate::{open, Client, Report};
use base64::Engine as _;
use lapin::options::{BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable};
use futures_lite::{Stream, StreamExt};
use lapin::{BasicProperties, Channel, Connection, Error, ErrorKind, Event};
use serde_json::{json, Value};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Sender {
    client: Arc<Client>,
    test: String,
    p: Parameters,
    correlation_id: String,
    connection: Option<Connection>,
    events: Option<Pin<Box<dyn Stream<Item = Event> + Send>>>,
    publishers: Vec<Publisher>,
    extra: FieldTable,
    started: i64,
    ended: i64,
    fault: Fault,
}

struct Publisher {
    channel: Option<Channel>,
    numbers: Vec<i64>,
    digest: Digest,
    pending: i64,
    returned: Vec<Value>,
}

impl Sender {
    pub async fn open(client: Arc<Client>, test: String, p: Parameters, correlation_id: String) -> Result<Self, Report> {
        let mut sender = Self {
            client, test, p, correlation_id, connection: None, events: None, publishers: vec![], extra: FieldTable::default(),
            started: 0, ended: 0, fault: Fault::default(),
        };
        if let Err(error) = sender.prepare().await {
            sender.fault.note(&error, sender.connection.as_ref());
        }
        if sender.fault.is_set() {
            return Err(sender.finish(true).await.0);
        }
        Ok(sender)
    }

    async fn prepare(&mut self) -> lapin::Result<()> {
        match untag_table(self.p.0.get("header_fields").unwrap_or(&Value::Null)) {
            Ok(extra) => self.extra = extra,
            Err(reason) => self.fault.error = reason,
        }
        if self.p.text("pattern", "p2p") != "none" {
            let connection = open(&self.client.url).await?;
            self.events = Some(Box::pin(connection.events_listener()));
            self.connection = Some(connection);
        }
        for _ in 0..self.p.number("num_publishers", 1) {
            let digest = Digest::new(&self.p.text("check", "hash"));
            self.publishers.push(Publisher { channel: None, numbers: vec![], digest, pending: 0, returned: vec![] });
            let Some(connection) = &self.connection else { continue };
            let channel = connection.create_channel().await?;
            if self.p.flag("transactional", false) {
                channel.tx_select().await?;
            } else if !self.p.flag("mandatory", false) && !self.p.flag("immediate", false) {
                channel.confirm_select(ConfirmSelectOptions::default()).await?;
            }
            self.publishers.last_mut().expect("one was pushed").channel = Some(channel);
        }
        Ok(())
    }

    pub async fn start(&mut self, headers: &FieldTable) {
        let first = integer(headers, "FIRST").unwrap_or(0);
        let count = integer(headers, "MESSAGE_COUNT").unwrap_or_else(|| self.p.number("num_messages", 100));
        let count = if self.p.list("destinations").is_empty() { 0 } else { count };
        let tx = text(headers, "TX").unwrap_or_else(|| "commit".into());
        if self.started == 0 {
            self.started = now();
        }
        if self.connection.is_some() {
            if let Err(error) = self.publish_all(first, count, &tx).await {
                let error = self.cause(error).await;
                self.fault.note(&error, self.connection.as_ref());
            }
        }
        self.ended = now();
    }

    /// A channel in a wrong state is what a close by the broker looks like while it is under way:
    /// wait for what the broker said.
    async fn cause(&mut self, error: Error) -> Error {
        let (ErrorKind::InvalidChannelState(..), Some(events)) = (error.kind(), &mut self.events) else { return error };
        let told = async {
            while let Some(event) = events.next().await {
                match event {
                    Event::Error(told) if matches!(told.kind(), ErrorKind::ProtocolError(_)) => return told,
                    _ => {}
                }
            }
            error.clone()
        };
        tokio::time::timeout(Duration::from_secs(5), told).await.unwrap_or(error)
    }

    /// Publish message by message, the publishers in turn, then wait for all of them.
    async fn publish_all(&mut self, first: i64, count: i64, tx: &str) -> lapin::Result<()> {
        let (rate, begun) = (self.p.rate("outgoing_rate"), Instant::now());
        let transactional = self.p.flag("transactional", false);
        for i in 0..count {
            if rate > 0.0 {
                tokio::time::sleep_until((begun + Duration::from_secs_f64(i as f64 / rate)).into()).await;
            }
            for publisher in 0..self.publishers.len() {
                self.publish(publisher, first + i).await?;
                let one = &mut self.publishers[publisher];
                one.pending += 1;
                if transactional && tx == "commit" && one.pending == self.p.number("tx_batch_size", 100) {
                    one.pending = 0;
                    one.channel.as_ref().expect("a connection has channels").tx_commit().await?;
                }
            }
        }
        for (index, one) in self.publishers.iter_mut().enumerate() {
            let Some(channel) = &one.channel else { continue };
            let confirmed = channel.wait_for_confirms().await?;
            match tx {
                "commit" if transactional => channel.tx_commit().await?,
                "rollback" if transactional => channel.tx_rollback().await?,
                _ => {}
            }
            one.pending = 0;
            channel.basic_qos(0, BasicQosOptions::default()).await?;
            for message in confirmed.into_iter().chain(channel.wait_for_confirms().await?) {
                let headers = message.delivery.properties.headers().clone().unwrap_or_default();
                one.returned.push(json!([index, integer(&headers, "SEQUENCE").unwrap_or(-1), message.reply_code]));
            }
        }
        Ok(())
    }

    async fn publish(&mut self, publisher: usize, sequence: i64) -> lapin::Result<()> {
        let destinations = self.p.list("destinations");
        let to = &destinations[(publisher + sequence as usize) % destinations.len()];
        let (body, properties) = match self.message(publisher, sequence) {
            Ok(made) => made,
            Err(reason) => {
                self.fault.error = reason;
                return Ok(());
            }
        };
        let bits = BasicPublishOptions { mandatory: self.p.flag("mandatory", false), immediate: self.p.flag("immediate", false) };
        let word = |name: &str| to[name].as_str().unwrap_or_default().into();
        let one = &mut self.publishers[publisher];
        let channel = one.channel.as_ref().expect("a connection has channels");
        drop(channel.basic_publish(word("exchange"), word("key"), bits, &body, properties).await?); // the barrier waits for it
        one.numbers.push(sequence);
        one.digest.add(&body);
        Ok(())
    }

    fn message(&self, publisher: usize, sequence: i64) -> Result<(Vec<u8>, BasicProperties), String> {
        let cycle = |name: &str| {
            let list = self.p.list(name);
            list.get(sequence as usize % list.len().max(1)).cloned().unwrap_or_default()
        };
        let properties = BasicProperties::default().with_correlation_id(self.correlation_id.as_str().into());
        if self.test == "Envelope" {
            return envelope(cycle("envelopes").as_str().unwrap_or_default());
        }
        if self.test == "FieldTable" {
            return Ok((vec![], properties.with_headers(untag_table(&cycle("tables"))?)));
        }
        let mut headers = self.extra.clone();
        headers.insert("CLIENT_NAME".into(), AMQPValue::LongString(self.client.name.as_str().into()));
        headers.insert("PUBLISHER".into(), AMQPValue::LongInt(publisher as i32));
        headers.insert("SEQUENCE".into(), AMQPValue::LongInt(sequence as i32));
        if self.p.flag("stamp", false) {
            headers.insert("SENT_NS".into(), AMQPValue::LongLongInt(now()));
        }
        let mode = if self.p.flag("persistent", false) { 2 } else { 1 };
        let properties = properties.with_headers(headers).with_delivery_mode(mode);
        Ok((self.p.body(sequence), properties.with_content_type("application/octet-stream".into())))
    }

    /// Report, and end the role where that is asked for or nothing more can be done.
    pub async fn finish(&mut self, last: bool) -> (Report, bool) {
        let over = last || self.fault.is_set();
        if let (true, Some(connection)) = (over, &self.connection) {
            let _ = connection.close(200, "done".into()).await; // the broker may have closed it already
        }
        let returned: Vec<&Value> = self.publishers.iter().flat_map(|one| &one.returned).collect();
        let stamp = |at: i64| if at == 0 { String::new() } else { at.to_string() };
        let body = json!({
            "role": "sender", "sent": self.publishers.iter().map(|one| runs(&one.numbers)).collect::<Vec<_>>(),
            "digests": self.publishers.iter().map(|one| one.digest.text()).collect::<Vec<_>>(), "returned": returned,
            "closed": self.fault.closed, "error": self.fault.error, "started_ns": stamp(self.started), "ended_ns": stamp(self.ended),
        });
        let count = self.publishers.iter().map(|one| one.numbers.len()).sum::<usize>() as i32;
        (Report { count, correlation_id: Some(self.correlation_id.clone()), body }, over)
    }
}

/// Project a canonical envelope by the RabbitMQ binding; the body is not touched.
fn envelope(encoded: &str) -> Result<(Vec<u8>, BasicProperties), String> {
    let body = base64::engine::general_purpose::STANDARD.decode(encoded).map_err(|error| error.to_string())?;
    let read: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    let meta = &read["meta"];
    let mut headers = FieldTable::default();
    for (name, value) in [("x-schema-version", &meta["schema_version"]), ("x-attempts", &read["attempts"])] {
        if let Some(number) = value.as_i64() {
            headers.insert(name.into(), AMQPValue::LongInt(number as i32));
        }
    }
    if let Some(lang) = meta["lang"].as_str() {
        headers.insert("x-source-lang".into(), AMQPValue::LongString(lang.into()));
    }
    let mut properties = BasicProperties::default()
        .with_headers(headers)
        .with_app_id("babelqueue".into())
        .with_content_type("application/json".into())
        .with_content_encoding("utf-8".into())
        .with_delivery_mode(2);
    if let Some(job) = read["job"].as_str().or(read["urn"].as_str()) {
        properties = properties.with_type(job.into());
    }
    if let Some(trace) = read["trace_id"].as_str() {
        properties = properties.with_correlation_id(trace.into());
    }
    if let Some(id) = meta["id"].as_str() {
        properties = properties.with_message_id(id.into());
    }
    Ok((body, properties))
}
