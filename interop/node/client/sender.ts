/** The sender: publishers with a channel each, confirms, and the report of what was sent. */
import type { ChannelModel, ConfirmChannel, Options } from "amqplib";
import { Digest, bodyOf, now, runs, untagTable, type Json } from "./message.js";
import { Played, int32, int64, open, options, type Parameters, type Report, type Role } from "./role.js";

export class Sender extends Played implements Role {
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
