/** What both roles share: parameters and their defaults, connections, and how a role went wrong. */
import amqp, { type Channel, type ChannelModel } from "amqplib";
import type { Json, Tagged } from "./message.js";

export type Role = { start(headers: Json): Promise<Report>; status(headers: Json): Promise<Report>; over: boolean };
export type Report = { count: number; correlationId?: string; body: Json };
type Closing = { level: string; code: number; text: string } | null;

export const DEFAULTS = {
  pattern: "p2p", destinations: [] as { exchange: string; key: string; queue: string }[], num_publishers: 1, num_messages: 100,
  message_bytes: 0, seed: 1, consumers: [] as { index: number; destination: number }[], consumer_out_active: true, persistent: false,
  mandatory: false, immediate: false, transactional: false, tx_batch_size: 100, outgoing_rate: 0, inbound_rate: 0, ack_mode: "auto",
  no_local: false, exclusive: false, prefetch_count: 0, header_fields: {} as Tagged, check: "hash", stamp: false, clock_shift_ns: "0",
  envelopes: [] as string[], tables: [] as Tagged[], echo: false, requeue_first: 0,
};
export type Parameters = typeof DEFAULTS;

export const options: Record<string, string> = {
  "-b": "127.0.0.1", "-p": "5672", "-v": "/", username: "guest", password: "guest", client_name: "node",
  control_key: "iop.control", control_timeout: "60",
};

/** When anything was heard last; 0 before the first ENLIST. */
export const silence = { heard: 0 };
export const touch = (): void => { if (silence.heard) silence.heard = performance.now(); };

export const open = (): Promise<ChannelModel> => amqp.connect(
  { hostname: options["-b"], port: Number(options["-p"]), vhost: options["-v"], username: options.username, password: options.password, heartbeat: 30 },
  { timeout: 50_000 });

export const int32 = (value: number): Json => ({ "!": "int32", value });
export const int64 = (value: bigint): Json => ({ "!": "int64", value });

/** What both roles keep: how the broker closed, or what else went wrong. */
export class Played {
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
