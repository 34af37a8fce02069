//! The Rust client of the lab (docs/reference/lab-protocol.md), on the crate lapin.
//!
//! It does what it is told and reports what it did; it never judges. This file is the control
//! conversation, `role` plays the roles, `message` makes and reads messages. Header fields of control
//! messages are handled in their tagged form: `["S", "INVITE"]`.

mod message;
mod role;

use futures_util::StreamExt;
use lapin::{message::Delivery, options::*, types::ShortString, BasicProperties, Channel, Connection};
use message::{now, tag_table, untag_table, Result};
use role::Role;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::process::exit;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::LazyLock;
use std::time::Duration;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

const TESTS: &str = "TC1_DummyRun TC2_BasicP2P TC3_BasicPubSub TC4_P2PMessageSize TC5_PubSubMessageSize \
    Circuit Envelope FieldTable";
static KEY: LazyLock<String> = LazyLock::new(|| format!("{}.{}", GIVEN["control_key"], GIVEN["client_name"]));
static INSTANCE: LazyLock<String> = LazyLock::new(|| format!("rust-{}-{}", std::process::id(), now()));
static HEARD: AtomicI64 = AtomicI64::new(0); // when anything was heard last; 0 before that
static GIVEN: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let words = std::env::args().skip(1);
    words.filter_map(|word| word.split_once('=').map(|(name, value)| (name.into(), value.into()))).collect()
});

type Request = (Delivery, Value);
type Held = HashMap<ShortString, UnboundedSender<Request>>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    stop_on(converse().await);
    eprintln!("rust client: nothing heard");
    exit(3)
}

fn stop_on(done: Result<()>) {
    if let Err(error) = done {
        eprintln!("rust client: {error}");
        exit(1)
    }
}

async fn connect() -> Result<Connection> {
    let escape = |name: &str| GIVEN[name].bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    let [name, password, vhost] = ["username", "password", "vhost"].map(escape);
    let place = format!("{}:{}/{vhost}", GIVEN["host"], GIVEN["port"]);
    let url = format!("amqp://{name}:{password}@{place}?heartbeat=30&connection_timeout=50000");
    Ok(Connection::connect(&url, Default::default()).await?)
}

/// Talk until there is too long a silence (IOP-5).
async fn converse() -> Result<()> {
    let limit = (GIVEN["control_timeout"].parse::<f64>()? * 1e9) as i64;
    let connection = connect().await?;
    let control = connection.create_channel().await?;
    let bits = QueueDeclareOptions { exclusive: true, auto_delete: true, ..Default::default() };
    control.queue_declare("".into(), bits, Default::default()).await?; // below, no name is this queue
    for key in [GIVEN["control_key"].as_str(), &KEY] {
        let exchange = "amq.topic".into();
        control.queue_bind("".into(), exchange, key.into(), Default::default(), Default::default()).await?;
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
    let arrived = now();
    let mut fields = tag_table(&message.properties);
    if fields["CONTROL_TYPE"].is_null() {
        fields["CONTROL_TYPE"] = fields["CONTROL_TOPIC"].take();
    }
    let id = message.properties.correlation_id().clone().unwrap_or_default();
    match fields["CONTROL_TYPE"][1].as_str().unwrap_or_default() {
        "INVITE" => answer_invite(control, &message, fields["TEST_NAME"][1].as_str()).await?,
        "CLOCK_SYNCH" => {
            let stamps = [arrived, now()].map(|stamp| json!(["l", stamp.to_string()]));
            let stamps = json!({"T1": fields["T1"], "T2": stamps[0], "T3": stamps[1]});
            reply(control, &message, "CLOCK_SYNCH", stamps, json!({})).await?;
        }
        "ASSIGN_ROLE" => {
            let (sender, asked) = unbounded_channel();
            let (control, role) = (control.clone(), Role::new(&message.data));
            sender.send((message, fields))?;
            held.insert(id, sender);
            tokio::spawn(async move { stop_on(play(control, role, asked).await) });
        }
        "START" | "STATUS_REQUEST" => {
            let last = fields["FINAL"][1] == true;
            let role = if last { held.remove(&id) } else { held.get(&id).cloned() };
            role.map(|role| role.send((message, fields))); // nobody listens when the role failed to begin
        }
        "TERMINATE" => exit(0),
        _ => {} // an unknown type is ignored
    }
    Ok(())
}

async fn answer_invite(control: &Channel, message: &Delivery, test: Option<&str>) -> Result<()> {
    if let Some(test) = test.filter(|test| TESTS.split(' ').all(|known| known != *test)) {
        let reason = json!({"REASON": ["S", format!("there is no test {test}")]});
        return reply(control, message, "DECLINE", reason, json!({})).await;
    }
    let given: HashMap<_, _> = GIVEN.iter().filter(|(name, _)| *name != "password").collect();
    let about = json!({
        "protocol": 2, "language": "rust", "runtime": format!("rustc {}", env!("LAB_RUSTC")), "library": "lapin",
        "library_version": "4.12.3", "platform": std::env::consts::OS, "given": given, "cannot": {},
        "tests": TESTS.split(' ').collect::<Vec<_>>(), "field_tags": "tbBsuIilfdDSATFVx",
    });
    reply(control, message, "ENLIST", json!({"CLIENT_PRIVATE_CONTROL_KEY": ["S", *KEY]}), about).await
}

/// Do what a role is asked, one after the other: accept it when it is ready, then report.
async fn play(control: Channel, mut role: Role, mut asked: UnboundedReceiver<Request>) -> Result<()> {
    while let Some((request, fields)) = role.attend(asked.recv()).await {
        let kind = fields["CONTROL_TYPE"][1].as_str().unwrap_or_default();
        let done = match kind {
            "ASSIGN_ROLE" => role.open(fields["ROLE"][1] == "SENDER").await,
            "START" => role.start(&fields).await,
            _ => role.status(&fields).await,
        };
        role.keep(done);
        let mut told = json!({"CORRELATION_ID": ["S", role.correlation]});
        if kind == "ASSIGN_ROLE" && !role.failed() {
            reply(&control, &request, "ACCEPT_ROLE", told, json!({})).await?;
            continue;
        }
        let report = role.report().await;
        let last = kind == "ASSIGN_ROLE" || fields["FINAL"][1] == true;
        for connection in role.connections.iter().filter(|_| last) {
            let _ = connection.close(200, "done".into()).await; // the broker may have closed it already
        }
        told["MESSAGE_COUNT"] = json!(["I", role.count.to_string()]);
        reply(&control, &request, "REPORT", told, report).await?;
        if last {
            break;
        }
    }
    Ok(())
}

async fn reply(control: &Channel, request: &Delivery, kind: &str, mut fields: Value, body: Value) -> Result<()> {
    fields["CONTROL_TYPE"] = json!(["S", kind]);
    fields["CLIENT_NAME"] = json!(["S", GIVEN["client_name"]]);
    fields["CLIENT_INSTANCE"] = json!(["S", *INSTANCE]);
    let id = request.properties.correlation_id().clone().unwrap_or_default();
    let properties = BasicProperties::default().with_headers(untag_table(&fields)).with_correlation_id(id);
    let to = request.properties.reply_to().clone().unwrap_or_default();
    control.basic_publish("".into(), to, Default::default(), body.to_string().as_bytes(), properties).await?;
    Ok(())
}
