//! Functions, queues and roles in a template.

use std::collections::BTreeMap;

use functions::SYSTEM;
use imports::Ports;
use serde_json::Value;

use crate::template::Template;

/// A function of the template.
#[derive(Debug, Clone, Copy)]
pub struct Function<'a> {
    /// Its logical id.
    pub id: &'a str,
    /// Its properties.
    pub properties: &'a Value,
    /// The program that it runs.
    pub binary: &'a str,
}

/// A queue of the template.
#[derive(Debug, Clone, Copy)]
pub struct Queue<'a> {
    /// Its logical id.
    pub id: &'a str,
    /// Its properties.
    pub properties: &'a Value,
}

/// A queue that invokes a function.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The queue.
    pub queue: Queue<'a>,
    /// How it invokes the function.
    pub properties: &'a Value,
}

impl Template {
    /// The resources of a type, with their properties.
    pub fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let of_kind = self.resources.iter().filter(move |(_, resource)| resource["Type"] == kind);
        of_kind.map(|(id, resource)| (id.as_str(), &resource["Properties"]))
    }

    /// The functions.
    pub fn functions(&self) -> impl Iterator<Item = Function<'_>> {
        self.of_type("AWS::Serverless::Function").map(|(id, properties)| {
            let binary = self.resources[id]["Metadata"]["BuildProperties"]["Binary"].as_str();
            Function { id, properties, binary: binary.unwrap_or_default() }
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
    /// What the program says of itself; none when there is no such program.
    pub fn program(&self) -> Option<&'static saga::Function<Ports>> {
        SYSTEM.function(self.binary)
    }

    /// The queue that the program works on; none when something else invokes it.
    pub fn receives(&self) -> Option<&'static messages::Queue> {
        self.program()?.source.queue()
    }

    /// Its environment. A value that only AWS knows is shown as the reference that it is.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let variables = self.properties["Environment"]["Variables"].as_object().into_iter().flatten();
        variables.map(|(name, value)| (name.clone(), text(value))).collect()
    }

    /// The queues that invoke it.
    pub fn sources(&self, template: &'a Template) -> impl Iterator<Item = Source<'a>> + use<'a> {
        let events = self.properties["Events"].as_object().into_iter().flat_map(|events| events.values());
        events.filter(|event| event["Type"] == "SQS").filter_map(|event| {
            let properties = &event["Properties"];
            Some(Source { queue: template.queue(&properties["Queue"])?, properties })
        })
    }

    /// For how many seconds it may run; SAM's default is 3.
    pub fn timeout(&self) -> u64 {
        number(&self.properties["Timeout"]).unwrap_or(3)
    }
}

impl Source<'_> {
    /// The most messages that the function is given at once; Lambda's default is 10.
    pub fn batch_size(&self) -> u64 {
        number(&self.properties["BatchSize"]).unwrap_or(10)
    }

    /// For how many seconds a batch may fill; none where that is not for a deployment to choose.
    pub fn window(&self) -> Option<u64> {
        number(&self.properties["MaximumBatchingWindowInSeconds"])
    }
}

impl Queue<'_> {
    /// How long it keeps a message, in seconds; SQS's default is 4 days.
    pub fn retention(&self) -> u64 {
        number(&self.properties["MessageRetentionPeriod"]).unwrap_or(345_600)
    }

    /// How long it hides a message that was received, in seconds; SQS's default is 30.
    pub fn visibility(&self) -> u64 {
        number(&self.properties["VisibilityTimeout"]).unwrap_or(30)
    }

    /// How often it delivers a message before it gives it up; none when it never does.
    pub fn receive_limit(&self) -> Option<u64> {
        self.properties["RedrivePolicy"].get("maxReceiveCount").map(|limit| number(limit).unwrap_or(0))
    }

    /// Where its messages go that were received too often.
    pub fn dead_letters<'a>(&self, template: &'a Template) -> Option<Queue<'a>> {
        template.queue(&self.properties["RedrivePolicy"]["deadLetterTargetArn"])
    }
}

/// A number, however it is written.
pub fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The logical id that a value refers to, as a whole or by an attribute.
pub fn referred(value: &Value) -> Option<&str> {
    value["Ref"].as_str().or_else(|| value["Fn::GetAtt"][0].as_str())
}

/// A value as one text, such as an ARN: a reference to `Resource.Arn` as `${Resource.Arn}`.
pub fn text(value: &Value) -> String {
    let reference = value["Ref"].as_str().map(|id| format!("${{{id}}}"));
    let attribute = || {
        let parts = value["Fn::GetAtt"].as_array()?;
        Some(format!("${{{}.{}}}", parts.first()?.as_str()?, parts.get(1)?.as_str()?))
    };
    let plain = || value.as_str().map(str::to_owned);
    reference.or_else(attribute).or_else(plain).unwrap_or_else(|| value.to_string())
}
