// A tally as a virtual object: Restate runs one handler per key at a time, and stores its state. Restate's
// ingress recognizes duplicates of an event by their idempotency key.
import * as restate from "@restatedev/restate-sdk";

const eventsOf = async (context) => (await context.get("events")) ?? [];

const tally = restate.object({
  name: "tally",
  handlers: {
    event: async (context, { event }) => {
      context.set("events", [...(await eventsOf(context)), event]);
      return {};
    },
    state: restate.handlers.object.shared(async (context) => ({ events: await eventsOf(context) })),
  },
});

await restate.serve({ services: [tally], port: Number(process.argv[2]) });
