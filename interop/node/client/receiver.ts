/** The receiver: consumers with a connection each, acknowledgements, and the report of what came. */
import type { Channel, ChannelModel, ConsumeMessage } from "amqplib";
import { Digest, bodyOf, firstDifference, now, runs, sha256, tagTable, type Json } from "./message.js";
import { Played, open, touch, type Parameters, type Report, type Role } from "./role.js";

type Consumer = { index: number; connection: ChannelModel; channel: Channel; queue: string; tag: string; open: number; last?: ConsumeMessage; requeued: number; turn: Promise<void> };
type Stream = { consumer: number; sender: string; correlation_id: string; publisher: number; received: number[]; redelivered: number[]; altered: unknown[][]; digest: Digest };

export class Receiver extends Played implements Role {
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
      const one: Consumer = { index: place.index, connection, channel: undefined as unknown as Channel, queue: "", tag: `c${place.index}`, open: 0, requeued: 0, turn: Promise.resolve() };
      this.consumers.push(one);
      one.channel = await connection.createChannel();
      this.watch(one.channel, "channel");
      if (this.p.prefetch_count) await one.channel.prefetch(this.p.prefetch_count);
      if (this.p.pattern === "pubsub") {
        one.queue = (await one.channel.assertQueue("", { exclusive: true, durable: false })).queue;
        await one.channel.bindQueue(one.queue, from.exchange, from.key);
      }
      await one.channel.consume(one.queue || from.queue, (message) => message && this.pace(one, message),
        { consumerTag: one.tag, noAck: this.p.ack_mode === "no_ack", exclusive: this.p.exclusive, noLocal: this.p.no_local });
    }
  }

  override fail(error: unknown, level?: string): void { super.fail(error, level); this.changed?.(); }

  /** Take a message now, or when its turn comes by the inbound rate. */
  private pace(one: Consumer, message: ConsumeMessage): void {
    if (!this.p.inbound_rate) return this.take(one, message);
    const rest = (): Promise<void> => new Promise((wake) => setTimeout(wake, 1000 / this.p.inbound_rate));
    one.turn = one.turn.then(() => this.take(one, message)).then(rest, (error: unknown) => this.fail(error));
  }

  private take(one: Consumer, message: ConsumeMessage): void {
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
        await one.turn;
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
