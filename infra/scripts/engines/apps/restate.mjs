// A tally as a virtual object: Restate gives each key one handler at a time, and keeps its state. Copies of an event are
// told by their idempotency key, which is what Restate's ingress has for them.
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
