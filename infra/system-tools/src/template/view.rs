//! Functions, queues and roles in a template.

use std::collections::BTreeMap;

use messages::Queue as TableQueue;
use saga::System;
use serde_json::Value;

use crate::template::Template;

pub use crate::template::source::text;

/// The handler of a program that is a single function.
const PROGRAM: &str = "bootstrap";

/// A function of the template.
#[derive(Debug, Clone, Copy)]
pub struct Function<'a> {
    /// The logical id of the function.
    pub id: &'a str,
    /// The properties of the function.
    pub properties: &'a Value,
    /// The name of the function in the table of the application: its handler, or its program if the handler is
    /// `bootstrap`.
    pub name: &'a str,
}

/// A queue of the template.
#[derive(Debug, Clone, Copy)]
pub struct Queue<'a> {
    /// The logical id of the queue.
    pub id: &'a str,
    /// The properties of the queue.
    pub properties: &'a Value,
}

/// A queue that invokes a function.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The queue.
    pub queue: Queue<'a>,
    /// The properties of the event source.
    pub properties: &'a Value,
}

impl Template {
    /// Returns the resources of a type with their properties.
    pub fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let of_kind = self.resources.iter().filter(move |(_, resource)| resource["Type"] == kind);
        of_kind.map(|(id, resource)| (id.as_str(), &resource["Properties"]))
    }

    /// The functions.
    pub fn functions(&self) -> impl Iterator<Item = Function<'_>> {
        self.of_type("AWS::Serverless::Function").map(|(id, properties)| {
            let handler = properties["Handler"].as_str().filter(|handler| *handler != PROGRAM);
            let program = || self.resources[id]["Metadata"]["BuildProperties"]["Binary"].as_str();
            Function { id, properties, name: handler.or_else(program).unwrap_or_default() }
        })
    }

    /// The queues.
    pub fn queues(&self) -> impl Iterator<Item = Queue<'_>> {
        self.of_type("AWS::SQS::Queue").map(|(id, properties)| Queue { id, properties })
    }

    /// The queue that a value refers to.
    pub fn queue(&self, reference: &Value) -> Option<Queue<'_>> {
        let id = referred(reference)?;
        self.queues().find(|queue| queue.id == id)
    }
}

impl<'a> Function<'a> {
    /// Returns the function's declaration; `None` if the table does not contain it.
    pub fn declaration<P>(&self, system: &System<P>) -> Option<&'static saga::Function<P>> {
        system.function(self.name)
    }

    /// Returns the queue that the function consumes; `None` if something else invokes it.
    pub fn receives<P>(&self, system: &System<P>) -> Option<&'static TableQueue> {
        self.declaration(system)?.source.queue()
    }

    /// Returns the environment variables of the function. Values that only AWS knows stay references.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let variables = self.properties["Environment"]["Variables"].as_object().into_iter().flatten();
        variables.map(|(name, value)| (name.clone(), text(value))).collect()
    }

    /// The queues that invoke the function.
    pub fn sources(&self, template: &'a Template) -> impl Iterator<Item = Source<'a>> + use<'a> {
        let events = self.properties["Events"].as_object().into_iter().flat_map(|events| events.values());
        events.filter(|event| event["Type"] == "SQS").filter_map(|event| {
            let properties = &event["Properties"];
            Some(Source { queue: template.queue(&properties["Queue"])?, properties })
        })
    }

    /// Returns the timeout of the function in seconds; SAM's default is 3.
    pub fn timeout(&self) -> u64 {
        number(&self.properties["Timeout"]).unwrap_or(3)
    }
}

impl Source<'_> {
    /// Returns the batch size; Lambda's default is 10.
    pub fn batch_size(&self) -> u64 {
        number(&self.properties["BatchSize"]).unwrap_or(10)
    }

    /// Returns the batching window in seconds; `None` if a deployment cannot choose it.
    pub fn window(&self) -> Option<u64> {
        number(&self.properties["MaximumBatchingWindowInSeconds"])
    }
}

impl Queue<'_> {
    /// Returns the retention of messages in seconds; SQS's default is 4 days.
    pub fn retention(&self) -> u64 {
        number(&self.properties["MessageRetentionPeriod"]).unwrap_or(345_600)
    }

    /// Returns the visibility timeout in seconds; SQS's default is 30.
    pub fn visibility(&self) -> u64 {
        number(&self.properties["VisibilityTimeout"]).unwrap_or(30)
    }

    /// Returns the receive limit; `None` if messages are never dead-lettered.
    pub fn receive_limit(&self) -> Option<u64> {
        self.properties["RedrivePolicy"].get("maxReceiveCount").map(|limit| number(limit).unwrap_or(0))
    }

    /// Returns the dead-letter queue.
    pub fn dead_letters<'a>(&self, template: &'a Template) -> Option<Queue<'a>> {
        template.queue(&self.properties["RedrivePolicy"]["deadLetterTargetArn"])
    }
}

impl Template {
    /// Returns `true` if a value refers to a resource, by a reference or by the name that the resource has.
    pub fn is_of(&self, value: &Value, id: &str) -> bool {
        if referred(value) == Some(id) {
            return true;
        }
        let properties = &self.resources.get(id).unwrap_or(&Value::Null)["Properties"];
        ["FunctionName", "QueueName"]
            .iter()
            .any(|name| !properties[*name].is_null() && properties[*name] == *value)
    }
}

/// Reads a number in any notation.
pub fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Returns the logical id that a value refers to, directly or by an attribute.
pub fn referred(value: &Value) -> Option<&str> {
    value["Ref"].as_str().or_else(|| value["Fn::GetAtt"][0].as_str())
}
