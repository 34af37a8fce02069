/**
 * The Node.js client of the lab (docs/reference/lab-protocol.md), on npm's amqplib.
 *
 * It does what it is told and reports what it did; it never judges. amqplib has no transactions and
 * no `immediate`; those parameters are declined. It reads int64 headers as doubles, so stamps are
 * good to a quarter of a microsecond.
 */
import { randomBytes } from "node:crypto";
import amqp, { type Channel, type ChannelModel, type ConfirmChannel, type ConsumeMessage, type Options } from "amqplib";
import { Digest, bodyOf, firstDifference, now, runs, sha256, tagTable, untagTable, type Json, type Tagged } from "./message.js";

const TESTS = ["TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "TC4_P2PMessageSize", "TC5_PubSubMessageSize", "Circuit", "Envelope", "FieldTable"];
const CANNOT: Record<string, string> = {
  immediate: "amqplib writes the bit as false always",
  transactional: "amqplib has no tx methods",
  "ack_mode=tx": "amqplib has no tx methods",
};
const OF_SENDER = ["immediate", "transactional"];

type Role = { start(headers: Json): Promise<Report>; status(headers: Json): Promise<Report>; over: boolean };
type Report = { count: number; correlationId?: string; body: Json };
type Closing = { level: string; code: number; text: string } | null;

const DEFAULTS = {
  pattern: "p2p", destinations: [] as { exchange: string; key: string; queue: string }[], num_publishers: 1, num_messages: 100,
  message_bytes: 0, seed: 1, consumers: [] as { index: number; destination: number }[], consumer_out_active: true, persistent: false,
  mandatory: false, immediate: false, transactional: false, tx_batch_size: 100, outgoing_rate: 0, inbound_rate: 0, ack_mode: "auto",
  no_local: false, exclusive: false, prefetch_count: 0, header_fields: {} as Tagged, check: "hash", stamp: false, clock_shift_ns: "0",
  envelopes: [] as string[], tables: [] as Tagged[], echo: false, requeue_first: 0,
};
type Parameters = typeof DEFAULTS;

const options: Record<string, string> = {
  "-b": "127.0.0.1", "-p": "5672", "-v": "/", username: "guest", password: "guest", client_name: "node",
  control_key: "iop.control", control_timeout: "60",
};
const OURS = [...Object.keys(options), "start_timeout"];
const given: Json = {};
const instance = `node-${randomBytes(8).toString("hex")}`;
const roles = new Map<string, Role>();
let control: Channel;
let assigned = 0;
let heard = 0; // when anything was heard last; 0 before the first ENLIST

function usage(text: string): never {
  console.error(`node client: ${text}`);
  process.exit(2);
}

function readArguments(words: string[]): void {
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    const at = word.indexOf("=");
    if (["-b", "-p", "-v"].includes(word)) options[word] = words[++i] ?? usage(`${word} needs a value`);
    else if (at > 0 && !word.startsWith("-")) options[word.slice(0, at)] = word.slice(at + 1);
    else usage(`${word} is neither -b, -p, -v nor name=value`);
  }
  for (const [name, text] of Object.entries(options)) {
    if (OURS.includes(name)) continue;
    try { given[name] = JSON.parse(text); } catch { given[name] = text; } // a word that is no JSON is a text
  }
  if (!(Number(options.control_timeout) > 0)) usage("control_timeout is a number of seconds");
}

const open = (): Promise<ChannelModel> => amqp.connect(
  { hostname: options["-b"], port: Number(options["-p"]), vhost: options["-v"], username: options.username, password: options.password, heartbeat: 30 },
  { timeout: 50_000 });

const touch = (): void => { if (heard) heard = performance.now(); };

function reply(request: ConsumeMessage, headers: Json, body?: Json): void {
  const text = body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body));
  control.publish("", request.properties.replyTo, text, {
    headers: { ...headers, CLIENT_NAME: options.client_name, CLIENT_INSTANCE: instance },
    correlationId: request.properties.correlationId,
  });
}

const int32 = (value: number): Json => ({ "!": "int32", value });
const int64 = (value: bigint): Json => ({ "!": "int64", value });

function send(request: ConsumeMessage, told: Report): void {
  const headers: Json = { CONTROL_TYPE: "REPORT", MESSAGE_COUNT: int32(told.count) };
  if (told.correlationId) headers.CORRELATION_ID = told.correlationId;
  reply(request, headers, told.body);
}

/** Why a role cannot be played with these parameters, or an empty text. */
function refusal(p: Json, sender: boolean): string {
  for (const [name, reason] of Object.entries(CANNOT)) {
    const [key, value] = name.split("=") as [string, string | undefined];
    if (OF_SENDER.includes(name) === sender && (value === undefined ? p[key] === true : p[key] === value)) return `${name}: ${reason}`;
  }
  return "";
}

function answerInvite(request: ConsumeMessage, headers: Json): void {
  const enlist: Json = { CONTROL_TYPE: "ENLIST", CLIENT_PRIVATE_CONTROL_KEY: `iop.control.${options.client_name}` };
  const test = headers.TEST_NAME;
  if (test === undefined) {
    reply(request, enlist, {
      protocol: 1, language: "node", runtime: `Node.js ${process.version}`, library: "amqplib", library_version: "2.3.1",
      platform: process.platform, tests: TESTS, cannot: CANNOT, field_tags: "tbBsuIilfdDSATFVx",
    });
  } else {
    const p = { ...given, ...readBody(request) };
    const sender = refusal(p, true), receiver = refusal(p, false);
    if (!TESTS.includes(test)) return reply(request, { CONTROL_TYPE: "DECLINE", REASON: `there is no test ${test}` });
    if (sender && receiver) return reply(request, { CONTROL_TYPE: "DECLINE", REASON: `${sender}; ${receiver}` });
    enlist.ROLES = sender ? "RECEIVER" : receiver ? "SENDER" : "SENDER,RECEIVER";
    if (sender || receiver) enlist.REASON = sender || receiver;
    reply(request, enlist);
  }
  heard = performance.now();
}

const readBody = (message: ConsumeMessage): Json => (message.content.length ? JSON.parse(message.content.toString()) : {});

async function assign(request: ConsumeMessage, headers: Json, correlationId: string): Promise<void> {
  const sender = headers.ROLE === "SENDER";
  const p = { ...DEFAULTS, ...given, ...readBody(request) } as Parameters;
  const reason = refusal(p, sender);
  if (reason) return reply(request, { CONTROL_TYPE: "DECLINE", REASON: reason });
  const role = sender ? new Sender(headers.TEST_NAME, p, correlationId) : new Receiver(p);
  try {
    await role.open();
  } catch (error) {
    role.fail(error);
    const told = role.report();
    await role.close();
    return send(request, told);
  }
  roles.set(request.properties.correlationId, role);
  reply(request, sender ? { CONTROL_TYPE: "ACCEPT_ROLE", CORRELATION_ID: correlationId } : { CONTROL_TYPE: "ACCEPT_ROLE" });
}

async function play(role: Role, kind: string, request: ConsumeMessage, headers: Json): Promise<void> {
  const told = kind === "START" ? await role.start(headers) : await role.status(headers);
  if (role.over) roles.delete(request.properties.correlationId);
  send(request, told);
}

function handle(message: ConsumeMessage, finish: () => void): void {
  const arrived = now();
  touch();
  const headers: Json = message.properties.headers ?? {};
  const kind = headers.CONTROL_TYPE ?? headers.CONTROL_TOPIC;
  if (kind === "INVITE") answerInvite(message, headers);
  else if (kind === "ASSIGN_ROLE") void assign(message, headers, `${instance}.${++assigned}`);
  else if (kind === "START" || kind === "STATUS_REQUEST") {
    const role = roles.get(message.properties.correlationId);
    if (role) void play(role, kind, message, headers);
  } else if (kind === "CLOCK_SYNCH") {
    reply(message, { CONTROL_TYPE: kind, T1: int64(BigInt(headers.T1)), T2: int64(arrived), T3: int64(now()) });
  } else if (kind === "TERMINATE") finish();
}

/** What both roles keep: how the broker closed, or what else went wrong. */
class Played {
  closed: Closing = null;
  fault = "";
  over = false;

  /** Note the close of a connection or channel by the broker; amqplib tells it by an event. */
  watch(emitter: ChannelModel | Channel, level: string): void {
    emitter.on("error", (error) => this.fail(error, level));
  }

  fail(error: unknown, level = "channel"): void {
    const { code, message } = error as { code?: unknown; message?: string };
    if (typeof code === "number") {
      if (!this.closed || level === "connection") this.closed = { level, code, text: /with message "(.*)"/s.exec(message ?? "")?.[1] ?? message ?? "" };
    } else if (!this.closed && !this.fault) this.fault = message ?? String(error);
  }
}

class Sender extends Played implements Role {
  private connection?: ChannelModel;
  private publishers: { channel?: ConfirmChannel; numbers: number[]; digest: Digest; returned: number[][] }[] = [];
  private extra: Json = {};
  private started = 0n;
  private ended = 0n;

  constructor(private test: string, private p: Parameters, private correlationId: string) { super(); }

  async open(): Promise<void> {
    this.extra = untagTable(this.p.header_fields);
    if (this.p.pattern !== "none") {
      this.connection = await open();
      this.watch(this.connection, "connection");
    }
    for (let index = 0; index < this.p.num_publishers; index++) {
      const one = { numbers: [] as number[], digest: new Digest(this.p.check), returned: [] as number[][], channel: undefined as ConfirmChannel | undefined };
      this.publishers.push(one);
      one.channel = await this.connection?.createConfirmChannel();
      if (!one.channel) continue;
      this.watch(one.channel, "channel");
      one.channel.on("return", (message) => one.returned.push([index, message.properties.headers?.SEQUENCE ?? -1, (message.fields as Json).replyCode]));
    }
  }

  async start(headers: Json): Promise<Report> {
    this.started ||= now();
    try {
      if (this.connection && this.p.destinations.length) {
        await Promise.all(this.publishers.map((_, index) => this.publish(index, headers.FIRST ?? 0, headers.MESSAGE_COUNT ?? this.p.num_messages)));
      }
    } catch (error) {
      this.fail(error);
    }
    this.ended = now();
    return this.status(headers);
  }

  private async publish(index: number, first: number, count: number): Promise<void> {
    const one = this.publishers[index]!;
    const begun = performance.now();
    const confirms: Promise<void>[] = [];
    for (let i = 0; i < count; i++) {
      const due = this.p.outgoing_rate ? begun + (i / this.p.outgoing_rate) * 1000 - performance.now() : 0;
      if (due > 0) await new Promise((wake) => setTimeout(wake, due));
      const [body, sent] = this.message(index, first + i);
      const to = this.p.destinations[(index + first + i) % this.p.destinations.length]!;
      let room = true;
      confirms.push(new Promise((confirmed) => { room = one.channel!.publish(to.exchange, to.key, body, sent, () => confirmed()); }));
      one.numbers.push(first + i);
      one.digest.add(body);
      if (!room) await new Promise<void>((drained) => one.channel!.once("drain", drained).once("close", drained));
    }
    await Promise.all(confirms);
    await one.channel!.prefetch(0);
  }

  private message(publisher: number, sequence: number): [Buffer, Options.Publish] {
    if (this.test === "Envelope") return envelope(Buffer.from(this.p.envelopes[sequence % this.p.envelopes.length]!, "base64"));
    if (this.test === "FieldTable") {
      return [Buffer.alloc(0), { correlationId: this.correlationId, headers: untagTable(this.p.tables[sequence % this.p.tables.length]!) }];
    }
    const headers: Json = { CLIENT_NAME: options.client_name, PUBLISHER: int32(publisher), SEQUENCE: int32(sequence), ...this.extra };
    if (this.p.stamp) headers.SENT_NS = int64(now());
    return [bodyOf(this.p.seed, sequence, this.p.message_bytes), {
      headers, correlationId: this.correlationId, contentType: "application/octet-stream", mandatory: this.p.mandatory, deliveryMode: this.p.persistent ? 2 : 1,
    }];
  }

  async status(headers: Json): Promise<Report> {
    const final = headers.FINAL !== false || this.closed !== null || this.fault !== "";
    if (final) await this.close();
    return this.report();
  }

  async close(): Promise<void> {
    this.over = true;
    await this.connection?.close().catch(() => undefined); // it may be closed by the broker already
  }

  report(): Report {
    return {
      count: this.publishers.reduce((sum, one) => sum + one.numbers.length, 0), correlationId: this.correlationId,
      body: {
        role: "sender", sent: this.publishers.map((one) => runs(one.numbers)), digests: this.publishers.map((one) => one.digest.text()),
        returned: this.publishers.flatMap((one) => one.returned), closed: this.closed, error: this.fault,
        started_ns: this.started ? String(this.started) : "", ended_ns: this.ended ? String(this.ended) : "",
      },
    };
  }
}

/** Project a canonical envelope by the RabbitMQ binding; the body is not touched. */
function envelope(body: Buffer): [Buffer, Options.Publish] {
  const read = JSON.parse(body.toString());
  const headers: Json = {};
  if (read.meta?.schema_version != null) headers["x-schema-version"] = int32(read.meta.schema_version);
  if (read.attempts != null) headers["x-attempts"] = int32(read.attempts);
  if (read.meta?.lang != null) headers["x-source-lang"] = read.meta.lang;
  const text = (value: unknown): string | undefined => (value == null ? undefined : String(value));
  return [body, {
    headers, type: text(read.job ?? read.urn), correlationId: text(read.trace_id), messageId: text(read.meta?.id), appId: "babelqueue",
    contentType: "application/json", contentEncoding: "utf-8", deliveryMode: 2,
  }];
}

type Consumer = { index: number; connection: ChannelModel; channel: Channel; queue: string; tag: string; open: number; last?: ConsumeMessage; requeued: number };
type Stream = { consumer: number; sender: string; correlation_id: string; publisher: number; received: number[]; redelivered: number[]; altered: unknown[][]; digest: Digest };

class Receiver extends Played implements Role {
  private consumers: Consumer[] = [];
  private streams = new Map<string, Stream>();
  private unexpected: unknown[][] = [];
  private echo: Json[] = [];
  private latency: Record<string, number> = {};
  private count = 0;
  private left = 0;
  private first = 0n;
  private last = 0n;
  private changed: () => void = () => undefined;

  constructor(private p: Parameters) { super(); }

  async open(): Promise<void> {
    if (this.p.pattern === "none" || !this.p.consumer_out_active) return;
    for (const place of this.p.consumers) {
      const from = this.p.destinations[place.destination]!;
      const connection = await open();
      this.watch(connection, "connection");
      const one: Consumer = { index: place.index, connection, channel: undefined as unknown as Channel, queue: "", tag: `c${place.index}`, open: 0, requeued: 0 };
      this.consumers.push(one);
      one.channel = await connection.createChannel();
      this.watch(one.channel, "channel");
      if (this.p.prefetch_count) await one.channel.prefetch(this.p.prefetch_count);
      if (this.p.pattern === "pubsub") {
        one.queue = (await one.channel.assertQueue("", { exclusive: true, durable: false })).queue;
        await one.channel.bindQueue(one.queue, from.exchange, from.key);
      }
      await one.channel.consume(one.queue || from.queue, (message) => message && void this.take(one, message),
        { consumerTag: one.tag, noAck: this.p.ack_mode === "no_ack", exclusive: this.p.exclusive, noLocal: this.p.no_local });
    }
  }

  override fail(error: unknown, level?: string): void { super.fail(error, level); this.changed?.(); }

  private async take(one: Consumer, message: ConsumeMessage): Promise<void> {
    const arrived = now();
    touch();
    if (!message.fields.redelivered && one.requeued < this.p.requeue_first) {
      one.requeued++;
      this.note(one, message, arrived, false);
      return one.channel.nack(message, false, true);
    }
    if (this.p.ack_mode === "pre_ack") one.channel.ack(message);
    this.note(one, message, arrived, true);
    if (this.p.ack_mode === "auto") one.channel.ack(message);
    if (this.p.ack_mode === "client" || this.p.ack_mode === "dups_ok") {
      one.last = message;
      if (++one.open === 10 && this.p.ack_mode === "dups_ok") this.settle(one);
    }
  }

  private settle(one: Consumer): void {
    if (one.last) one.channel.ack(one.last, true);
    one.last = undefined;
    one.open = 0;
  }

  /** Keep what a message was; one that is put back is not counted. */
  private note(one: Consumer, message: ConsumeMessage, arrived: bigint, counted: boolean): void {
    const headers: Json = message.properties.headers ?? {};
    this.first ||= arrived;
    this.last = arrived;
    if (counted) this.count++;
    if (this.p.echo) this.echo.push(echoed(one.index, message));
    else if (counted && (typeof headers.CLIENT_NAME !== "string" || typeof headers.SEQUENCE !== "number")) {
      this.unexpected.push([one.index, message.content.length, sha256(message.content)]);
    } else if (counted) {
      this.add(one.index, headers, message);
      if (this.p.stamp && headers.SENT_NS !== undefined) this.measure(arrived - BigInt(headers.SENT_NS) + BigInt(this.p.clock_shift_ns));
    }
    this.changed();
  }

  private add(consumer: number, headers: Json, message: ConsumeMessage): void {
    const publisher: number = headers.PUBLISHER ?? 0, sender: string = headers.CLIENT_NAME, correlation: string = message.properties.correlationId ?? "";
    const key = JSON.stringify([consumer, sender, correlation, publisher]);
    let stream = this.streams.get(key);
    if (!stream) {
      stream = { consumer, sender, correlation_id: correlation, publisher, received: [], redelivered: [], altered: [], digest: new Digest(this.p.check) };
      this.streams.set(key, stream);
    }
    const sequence: number = headers.SEQUENCE;
    stream.received.push(sequence);
    if (message.fields.redelivered) stream.redelivered.push(sequence);
    if (this.p.check !== "hash") return;
    stream.digest.add(message.content);
    const at = firstDifference(message.content, bodyOf(this.p.seed, sequence, this.p.message_bytes));
    if (at >= 0) stream.altered.push([sequence, at, message.content.length, sha256(message.content)]);
  }

  private measure(latency: bigint): void {
    const size = latency < 0n ? -latency : latency;
    const drop = 1n << BigInt(Math.max(0, size.toString(2).length - 11));
    const bucket = String(latency / drop * drop);
    this.latency[bucket] = (this.latency[bucket] ?? 0) + 1;
  }

  async start(): Promise<Report> { return this.report(); }

  async status(headers: Json): Promise<Report> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, headers.WAIT_MS ?? 0);
      this.changed = () => {
        if (this.count < (headers.WAIT_COUNT ?? 0) && !this.closed && !this.fault) return;
        clearTimeout(timer);
        resolve();
      };
      this.changed();
    });
    this.changed = () => undefined;
    if (headers.FINAL === false) return this.report();
    for (const one of this.consumers) {
      try {
        await one.channel.cancel(one.tag);
        this.settle(one);
        await one.channel.prefetch(0); // the answer says that the broker has the acknowledgements
        if (one.queue) this.left += (await one.channel.deleteQueue(one.queue)).messageCount;
      } catch (error) {
        this.fail(error);
      }
    }
    const told = this.report();
    await this.close();
    return told;
  }

  async close(): Promise<void> {
    this.over = true;
    for (const one of this.consumers) await one.connection.close().catch(() => undefined); // perhaps closed already
  }

  report(): Report {
    const streams = [...this.streams.values()].map((one) => ({ ...one, received: runs(one.received), redelivered: runs(one.redelivered), digest: one.digest.text() }));
    const body: Json = {
      role: "receiver", streams, unexpected: this.unexpected, left: this.left, closed: this.closed, error: this.fault,
      first_ns: this.first ? String(this.first) : "", last_ns: this.last ? String(this.last) : "", latency: this.latency,
    };
    if (this.p.echo) body.echo = this.echo;
    return { count: this.count, body };
  }
}

function echoed(consumer: number, message: ConsumeMessage): Json {
  const from = message.properties as Json;
  const names = { content_type: "contentType", content_encoding: "contentEncoding", delivery_mode: "deliveryMode", priority: "priority", correlation_id: "correlationId",
    reply_to: "replyTo", expiration: "expiration", message_id: "messageId", type: "type", user_id: "userId", app_id: "appId" };
  const properties: Json = {};
  for (const [name, ours] of Object.entries(names)) if (from[ours] !== undefined) properties[name] = from[ours];
  return { consumer, body: message.content.toString("base64"), redelivered: message.fields.redelivered, properties, headers: tagTable(from.headers ?? {}) };
}

async function main(): Promise<void> {
  readArguments(process.argv.slice(2));
  const connection = await open();
  const lost = (): never => { console.error("node client: the control connection is lost"); process.exit(1); };
  connection.on("error", () => undefined).on("close", lost); // the close that follows tells
  control = await connection.createChannel();
  const { queue } = await control.assertQueue("", { exclusive: true, autoDelete: true, durable: false });
  for (const key of [options.control_key!, `iop.control.${options.client_name}`]) await control.bindQueue(queue, "amq.topic", key);
  const end = (): void => { connection.removeListener("close", lost); void connection.close().finally(() => process.exit(0)); };
  await control.consume(queue, (message) => message && handle(message, end), { noAck: true });
  console.log(`READY ${options.client_name}`);
  setInterval(() => {
    if (!heard || performance.now() - heard < Number(options.control_timeout) * 1000) return;
    console.error("node client: nothing heard");
    process.exit(3);
  }, 100);
}

main().catch((error: unknown) => { console.error(`node client: ${String(error)}`); process.exit(1); });
