/** The roles: a sender publishes when it is told to, a receiver consumes from when it accepts. */
import type { Channel, ChannelModel, ConfirmChannel, ConsumeMessage, Options } from "amqplib";
import {
  firstDifference, int32, int64, makeBody, now, project, propertiesOf, sha256, tagTable, untagTable, type Json,
} from "./message.js";

/** What the roles need of the client. */
export type Client = { name: string; open(): Promise<ChannelModel>; touch(): void };

const rest = (milliseconds: number): Promise<void> =>
  new Promise((wake) => { if (milliseconds > 0) setTimeout(wake, milliseconds); else wake(); });

/** What both roles have: parameters, connections, and what happened since the last report. */
export abstract class Role {
  connections: ChannelModel[] = [];
  count = 0;
  failed = false;
  private told: Record<string, unknown[]> = {};
  protected changed: () => void = () => undefined;

  protected p: Json = {};

  constructor(protected client: Client, readonly correlation: string) {}

  protected abstract open(): Promise<void>;
  async begin(parameters: string): Promise<void> {
    this.p = JSON.parse(parameters);
    await this.open();
  }
  async start(_fields: Json): Promise<void> {}
  async status(_fields: Json): Promise<void> {}

  /** Do something and keep what went wrong. */
  async attempt(work: () => Promise<void>): Promise<void> {
    try { await work(); } catch (error) { this.fail(error); }
  }

  /** Add to the next report. */
  protected tell(kind: string, what: unknown): void { (this.told[kind] ??= []).push(what); }

  /** Tell how the broker closed, which amqplib tells by an event, or what else went wrong. */
  protected fail(error: unknown, level = "channel"): void {
    const { code, message = String(error) } = error as { code?: unknown; message?: string };
    const text = /with message "(.*)"/s.exec(message)?.[1] ?? message;
    if (typeof code === "number") this.tell("closed", { level, code, text });
    this.tell("error", message);
    this.failed = true;
    this.changed();
  }

  protected watch<T extends ChannelModel | Channel>(emitter: T, level: string): T {
    emitter.on("error", (error) => this.fail(error, level));
    return emitter;
  }

  protected async connect(): Promise<ChannelModel> {
    const connection = this.watch(await this.client.open(), "connection");
    this.connections.push(connection);
    return connection;
  }

  protected hash(body: Buffer): string { return this.p.check === "hash" ? sha256(body) : ""; }

  report(): Json {
    const told = this.told;
    this.told = {};
    return told;
  }
}

export class Sender extends Role {
  private channels: ConfirmChannel[] = [];

  async open(): Promise<void> {
    const connection = await this.connect();
    while (this.channels.length < this.p.lines.length) {
      const channel = this.watch(await connection.createConfirmChannel(), "channel");
      channel.on("return", ({ fields, properties }) =>
        this.tell("returned", { code: (fields as Json).replyCode, headers: tagTable(properties.headers) }));
      this.channels.push(channel);
    }
  }

  override async start(fields: Json): Promise<void> {
    this.tell("started_ns", String(now()));
    const { FIRST, MESSAGE_COUNT } = fields;
    await Promise.all(this.channels.map((_, publisher) => this.publish(publisher, FIRST, MESSAGE_COUNT)));
    this.tell("ended_ns", String(now()));
  }

  /** Send one publisher's batch and wait until the broker has it. */
  private async publish(publisher: number, first: number, count: number): Promise<void> {
    const channel = this.channels[publisher]!, begun = performance.now();
    const confirms: Promise<void>[] = [];
    for (let done = 0; done < count; done++) {
      if (this.p.every_ns) await rest(begun + (done * this.p.every_ns) / 1e6 - performance.now());
      const sequence = first + done;
      const [body, options] = this.message(publisher, sequence);
      const to = this.p.destinations[(publisher + sequence) % this.p.destinations.length];
      let room = true;
      confirms.push(new Promise((taken) => {
        room = channel.publish(to.exchange, to.key, body, options, () => taken());
      }));
      this.tell("messages", { publisher, sequence, sha256: this.hash(body) });
      this.count++;
      if (!room) await new Promise<void>((drained) => channel.once("drain", drained).once("close", drained));
    }
    await Promise.all(confirms);
    await channel.prefetch(0);
  }

  private message(publisher: number, sequence: number): [Buffer, Options.Publish] {
    const { envelopes, header_fields, seed, message_bytes, mandatory, delivery_mode: deliveryMode } = this.p;
    if (envelopes.length) return project(Buffer.from(envelopes[sequence % envelopes.length], "base64"));
    const headers = {
      ...untagTable(header_fields), CLIENT_NAME: this.client.name, PUBLISHER: int32(publisher),
      SEQUENCE: int32(sequence), SENT_NS: int64(now()),
    };
    return [makeBody(seed, sequence, message_bytes), {
      headers, mandatory, deliveryMode, correlationId: this.correlation, contentType: "application/octet-stream",
    }];
  }
}

/** A consumer on a connection of its own; `turn` is when it has taken in all that came. */
type Consumer = {
  index: number; channel: Channel; queue: string; own: boolean; turn: Promise<void>;
};

export class Receiver extends Role {
  private consumers: Consumer[] = [];

  async open(): Promise<void> {
    for (const { index, exchange, key, queue } of this.p.lines) {
      const channel = this.watch(await (await this.connect()).createChannel(), "channel");
      const one: Consumer = { index, channel, queue, own: !queue, turn: Promise.resolve() };
      if (one.own) {
        one.queue = (await channel.assertQueue("", { exclusive: true, durable: false })).queue;
        await channel.bindQueue(one.queue, exchange, key);
      }
      await channel.prefetch(this.p.prefetch_count);
      const { no_ack: noAck, no_local: noLocal, exclusive } = this.p;
      const options = { consumerTag: "lab", noAck, noLocal, exclusive };
      await channel.consume(one.queue, (message) => message && this.pace(one, message), options);
      this.consumers.push(one);
    }
  }

  /** Take a message now, or when its turn comes by the inbound rate. */
  private pace(one: Consumer, message: ConsumeMessage): void {
    this.client.touch();
    if (!this.p.every_ns) return this.take(one, message);
    const take = async (): Promise<void> => this.take(one, message);
    one.turn = one.turn.then(() => this.attempt(take)).then(() => rest(this.p.every_ns / 1e6));
  }

  /** Look at one delivery and acknowledge it as we were told, or put it back. */
  private take(one: Consumer, message: ConsumeMessage): void {
    const { requeue_first, ack_every, ack_first } = this.p;
    const tag = message.fields.deliveryTag, putBack = tag <= requeue_first;
    const due = ack_every > 0 && tag % ack_every === 0 && !putBack;
    if (due && ack_first) one.channel.ack(message, ack_every > 1);
    this.note(one.index, message, putBack);
    if (putBack) one.channel.nack(message, false, true);
    else this.count++;
    if (due && !ack_first) one.channel.ack(message, ack_every > 1);
    this.changed();
  }

  /** List one delivery. */
  private note(consumer: number, { fields, properties, content }: ConsumeMessage, putBack: boolean): void {
    const { check, seed, message_bytes, echo } = this.p;
    const wanted = (): Buffer => makeBody(seed, properties.headers?.SEQUENCE ?? 0, message_bytes);
    this.tell("messages", {
      consumer, redelivered: fields.redelivered, put_back: putBack, arrived_ns: String(now()), length: content.length,
      sha256: this.hash(content), differs: check === "hash" ? firstDifference(content, wanted()) : -1,
      properties: propertiesOf(properties), headers: tagTable(properties.headers),
      body: echo ? content.toString("base64") : undefined,
    });
  }

  /** Wait for so many messages, or so long; then end the role if this is final. */
  override async status(fields: Json): Promise<void> {
    await new Promise<void>((wake) => {
      const timer = setTimeout(wake, fields.WAIT_MS);
      this.changed = () => {
        if (this.count < fields.WAIT_COUNT && !this.failed) return;
        clearTimeout(timer);
        wake();
      };
      this.changed();
    });
    for (const one of fields.FINAL ? this.consumers : []) {
      await one.channel.cancel("lab");
      await one.turn;
      if (this.p.ack_rest) one.channel.ackAll();
      await one.channel.prefetch(0); // the answer says that the broker has the acknowledgements
      if (one.own) this.tell("left", (await one.channel.deleteQueue(one.queue)).messageCount);
    }
  }
}
