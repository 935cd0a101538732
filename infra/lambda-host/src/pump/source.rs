//! Which queue is behind which function.

use std::time::Duration;

use outbox::Queue;

/// What a function gets of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A batch of messages; it answers for each of them.
    Batch,
    /// What each message says, as an event of its own: so notifications of S3 get to a function that S3 itself invokes
    /// in the cloud.
    Event,
}

/// A queue with a function behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The queue.
    pub queue: Queue,
    /// The function's name.
    pub function: &'static str,
    /// What the function gets.
    pub content: Content,
    /// The most messages of one invocation.
    pub batch_size: usize,
    /// How long to wait for a batch to fill.
    pub window: Duration,
    /// How many batches are with the function at the same time.
    pub concurrency: usize,
}

impl Source {
    /// The sources of the deployment, with the defaults of its template. An emulator runs one invocation of a function
    /// after the other, so two at a time keep it busy.
    pub const ALL: [Self; 5] = [
        Self::new(Queue::Uploads, "notify-upload", Content::Event, 1),
        Self::new(Queue::Saga, "run-saga", Content::Batch, 10),
        Self::new(Queue::Parse, "parse-references", Content::Batch, 1),
        Self::new(Queue::ParseDead, "report-faults", Content::Batch, 10),
        Self::new(Queue::Control, "dispatch-outbox", Content::Batch, 10),
    ];

    const fn new(queue: Queue, function: &'static str, content: Content, batch_size: usize) -> Self {
        Self { queue, function, content, batch_size, window: Duration::ZERO, concurrency: 2 }
    }
}
