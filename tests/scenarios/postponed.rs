//! Events that arrive before the event that they depend on.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use messages::{Consumer, Delivery, Disposition, PartitionKey, messages};
use saga::runner::LAST_POSTPONED_DELIVERY;
use saga::{Decision, Event, SAGA, Saga};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::world::World;

messages! {
    /// The events of a parcel.
    enum ParcelEvent of "parcels" to SAGA {
        Sent {} = 1,
        Weighed { grams: u32 } = 1,
        Lost {} = 1,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
enum Parcel {
    #[default]
    Unknown,
    Sent {
        grams: Option<u32>,
    },
    Lost {
        at: Timestamp,
    },
}

struct Parcels;

impl Saga for Parcels {
    const NAME: &'static str = "parcels";
    type State = Parcel;
    type Event = ParcelEvent;

    fn transition(
        &self,
        parcel: &Parcel,
        event: &Event<'_, ParcelEvent>,
        now: Timestamp,
    ) -> Decision<Parcel> {
        match (parcel, event.body) {
            (Parcel::Unknown, ParcelEvent::Sent {}) => {
                Decision::to(Parcel::Sent { grams: None }, "sent").into()
            }
            (Parcel::Unknown, ParcelEvent::Weighed { .. }) => {
                Decision::postpone("the parcel is not known yet")
            }
            (Parcel::Sent { .. }, ParcelEvent::Weighed { grams }) => {
                Decision::to(Parcel::Sent { grams: Some(*grams) }, "weighed").into()
            }
            (_, ParcelEvent::Lost {}) => Decision::to(Parcel::Lost { at: now }, "lost").into(),
            _ => Decision::ignore("not expected in this state"),
        }
    }

    fn ended_at(&self, parcel: &Parcel) -> Option<Timestamp> {
        if let Parcel::Lost { at } = parcel { Some(*at) } else { None }
    }
}

fn partition() -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(1))
}

async fn delivered(world: &World, event: &ParcelEvent) -> Delivery {
    let entry = world.backend.ports.engine.entry_point("client").unwrap();
    let mut session = entry.session(partition());
    session.send(event).unwrap();
    let [message] = session.commit().await.unwrap().try_into().unwrap();
    Delivery {
        record_id: message.id.to_string(),
        body: message.encode().unwrap(),
        receive_count: 1,
        reason: None,
    }
}

async fn parcel(world: &World) -> Option<Parcel> {
    Some(world.document(partition()).await?.content.state.read().unwrap())
}

fn parcels(world: &World) -> Arc<dyn Consumer> {
    world.backend.ports.engine.run("parcels", Parcels).unwrap()
}

async fn answer(function: &Arc<dyn Consumer>, delivery: &Delivery, receive_count: u32) -> Disposition {
    let batch = [Delivery { receive_count, ..delivery.clone() }];
    function.consume(&batch, None).await.remove(0)
}

#[tokio::test]
async fn early_event_waits_for_its_predecessor() {
    let world = World::new();
    let function = parcels(&world);
    let weighed = delivered(&world, &ParcelEvent::Weighed { grams: 70 }).await;
    let mut waited = Duration::ZERO;
    for times in 1..LAST_POSTPONED_DELIVERY {
        let Disposition::Retry { after, reason } = answer(&function, &weighed, times).await else {
            panic!("delivery {times}")
        };
        // The maximum visibility timeout of SQS is 12 hours.
        assert!(after >= Duration::from_secs(5) && after <= Duration::from_secs(12 * 3_600), "{after:?}");
        assert_eq!(reason, "the parcel is not known yet");
        waited += after;
    }
    assert!(waited >= Duration::from_secs(40 * 3_600), "{waited:?}");
    assert_eq!(parcel(&world).await, None);

    let sent = delivered(&world, &ParcelEvent::Sent {}).await;
    assert_eq!(answer(&function, &sent, 1).await, Disposition::Acknowledge);
    assert_eq!(answer(&function, &weighed, LAST_POSTPONED_DELIVERY).await, Disposition::Acknowledge);
    assert_eq!(parcel(&world).await, Some(Parcel::Sent { grams: Some(70) }));
}

#[tokio::test]
async fn premature_event_is_dead_lettered_and_redrivable() {
    let world = World::new();
    let function = parcels(&world);
    let weighed = delivered(&world, &ParcelEvent::Weighed { grams: 70 }).await;
    for receive_count in [LAST_POSTPONED_DELIVERY, LAST_POSTPONED_DELIVERY + 5] {
        let reason = format!("still too early at delivery {receive_count}: the parcel is not known yet");
        assert_eq!(
            answer(&function, &weighed, receive_count).await,
            Disposition::DeadLetter { reason },
            "a queue with another receive limit is bounded too"
        );
    }
    let sent = delivered(&world, &ParcelEvent::Sent {}).await;
    assert_eq!(answer(&function, &sent, 1).await, Disposition::Acknowledge);
    assert_eq!(answer(&function, &weighed, 1).await, Disposition::Acknowledge);
    assert_eq!(parcel(&world).await, Some(Parcel::Sent { grams: Some(70) }));
}

#[tokio::test]
async fn postponed_event_is_dropped_after_end() {
    let world = World::new();
    let function = parcels(&world);
    let weighed = delivered(&world, &ParcelEvent::Weighed { grams: 70 }).await;
    assert!(matches!(answer(&function, &weighed, 1).await, Disposition::Retry { .. }));
    let lost = delivered(&world, &ParcelEvent::Lost {}).await;
    assert_eq!(answer(&function, &lost, 1).await, Disposition::Acknowledge);
    let ended = parcel(&world).await;
    assert!(matches!(ended, Some(Parcel::Lost { .. })), "{ended:?}");
    assert_eq!(answer(&function, &weighed, 2).await, Disposition::Acknowledge);
    assert_eq!(parcel(&world).await, ended);
}
