//! A diagram of the queues and functions of a system.

use std::fmt::Write;

use messages::{Queue, naming};
use saga::System;

/// Returns a Mermaid flowchart: the queues, the functions behind them, and the queues to which these send.
pub fn mermaid<P>(system: &System<P>) -> String {
    let mut lines = String::from("flowchart LR\n");
    let mut line = |text: String| {
        // Writing to a string does not fail.
        let _ = writeln!(lines, "    {text}");
    };
    for spec in system.queues {
        line(format!("{}[({})]", queue(&spec.queue), spec.queue));
    }
    for function in system.functions {
        line(format!("{}[{}]", node(function.name), function.name));
    }
    for spec in system.queues {
        if let Some(dead) = &spec.dead_letters {
            line(format!("{} -.-> {}", queue(&spec.queue), queue(dead)));
        }
    }
    for function in system.functions {
        let name = node(function.name);
        if let Some(source) = function.source.queue() {
            line(format!("{} --> {name}", queue(source)));
        }
        for sent in function.sends {
            line(format!("{name} --> {}", queue(sent)));
        }
        for drained in function.drains {
            line(format!("{} -.-> {name}", queue(drained)));
        }
    }
    lines
}

/// Returns the identifier of a queue.
fn queue(queue: &Queue) -> String {
    format!("queue_{}", naming::snake(queue.name()))
}

/// Returns the identifier of a function.
fn node(name: &str) -> String {
    format!("function_{}", naming::snake(name))
}

#[cfg(test)]
mod tests {
    use messages::QueueSpec;
    use saga::{Function, Source};

    use super::*;

    const WORK: Queue = Queue::named("work");
    const DEAD: Queue = Queue::named("work-dead");
    static QUEUES: [QueueSpec; 2] = [QueueSpec::standard(WORK, DEAD), QueueSpec::without_consumer(DEAD)];
    static WORKER: Function<()> = Function {
        name: "worker",
        services: &[],
        source: Source::Queue(WORK),
        sends: &[WORK],
        drains: &[DEAD],
        build: None,
    };
    static SYSTEM: System<()> = System { name: "shop", queues: &QUEUES, functions: &[&WORKER] };

    #[test]
    fn diagram_has_every_queue_function_and_path() {
        let expected = "\
flowchart LR
    queue_work[(work)]
    queue_work_dead[(work-dead)]
    function_worker[worker]
    queue_work -.-> queue_work_dead
    queue_work --> function_worker
    function_worker --> queue_work
    queue_work_dead -.-> function_worker
";
        assert_eq!(mermaid(&SYSTEM), expected);
    }
}
