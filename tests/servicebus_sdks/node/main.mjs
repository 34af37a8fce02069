// Drive the emulator with the unmodified @azure/service-bus and print what it saw, as one object.
// node main.mjs CONNECTION QUEUE SESSION_QUEUE
import { ServiceBusClient } from "@azure/service-bus";

const PATIENCE = 60_000;
const [connection, queue, sessions] = process.argv.slice(2);
const client = new ServiceBusClient(connection);
const sender = client.createSender(queue);
const receiver = client.createReceiver(queue);
const seen = {};

async function take(from, count) {
  const taken = [];
  const end = Date.now() + PATIENCE;
  while (taken.length < count && Date.now() < end) {
    taken.push(...(await from.receiveMessages(count - taken.length, { maxWaitTimeInMs: 5_000 })));
  }
  if (taken.length < count) throw new Error(`${taken.length} of ${count} messages came`);
  return taken;
}

const bodies = (messages) => messages.map((message) => message.body);

await sender.sendMessages({ body: "one" });
const batch = await sender.createMessageBatch();
for (const body of ["two", "three"]) {
  if (!batch.tryAddMessage({ body })) throw new Error("the batch is full");
}
await sender.sendMessages(batch);
seen.peeked = bodies(await receiver.peekMessages(10));

const [one, two, three] = await take(receiver, 3);
seen.received = bodies([one, two, three]);
await receiver.completeMessage(one);
await receiver.abandonMessage(two);
const [again] = await take(receiver, 1);
seen.count_rose = again.deliveryCount - two.deliveryCount;
await receiver.deferMessage(again);
const [deferred] = await receiver.receiveDeferredMessages([again.sequenceNumber]);
seen.deferred = deferred.body;
await receiver.completeMessage(deferred);

const before = three.lockedUntilUtc.getTime();
seen.renewed = (await receiver.renewMessageLock(three)).getTime() >= before;
const why = { deadLetterReason: "why", deadLetterErrorDescription: "because" };
await receiver.deadLetterMessage(three, why);
const graveyard = client.createReceiver(queue, { subQueueType: "deadLetter" });
const [dead] = await take(graveyard, 1);
seen.dead = [dead.body, dead.deadLetterReason, dead.deadLetterErrorDescription];
await graveyard.completeMessage(dead);

const hour = new Date(Date.now() + 3_600_000);
const [number] = await sender.scheduleMessages({ body: "never" }, hour);
await sender.cancelScheduledMessages(number);
await sender.scheduleMessages({ body: "soon" }, new Date(Date.now() + 500));
const [soon] = await take(receiver, 1);
seen.scheduled = soon.body;
await receiver.completeMessage(soon);

await receiver.close();
await sender.sendMessages({ body: "gone" });
const eager = client.createReceiver(queue, { receiveMode: "receiveAndDelete" });
seen.deleted = bodies(await take(eager, 1))[0];
seen.left = (await eager.peekMessages(10)).length;

const partial = client.createSender(sessions);
await partial.sendMessages({ body: "in session", sessionId: "s1" });
const session = await client.acceptSession(sessions, "s1");
const [held] = await take(session, 1);
await session.setSessionState(Buffer.from("halfway"));
seen.session = [held.sessionId, held.body, Buffer.from(await session.getSessionState()).toString()];
await session.completeMessage(held);

await client.close();
console.log(JSON.stringify(seen));
