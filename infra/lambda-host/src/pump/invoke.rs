//! Invoking a function, by Lambda's own call
//! (<https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html>).

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use super::answer::Answer;

/// Longer than any function may run (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>), plus
/// what an emulator may need to build it first.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// Lambda says with it that the function failed.
const FUNCTION_ERROR: &str = "x-amz-function-error";
/// The most characters of a failure that are shown.
const MAX_SHOWN: usize = 500;

/// An endpoint at which no function can be invoked.
#[derive(Debug, thiserror::Error)]
#[error("{endpoint} is not a valid endpoint")]
pub struct WrongEndpoint {
    endpoint: String,
    #[source]
    source: reqwest::Error,
}

/// The functions at an address.
#[derive(Clone)]
pub struct Functions {
    endpoint: String,
    client: reqwest::Client,
}

impl Functions {
    /// The functions at an address, such as `http://127.0.0.1:9000`.
    ///
    /// # Errors
    /// When it is not the address of an HTTP server.
    pub fn at(endpoint: &str) -> Result<Self, WrongEndpoint> {
        let wrong = |source| WrongEndpoint { endpoint: endpoint.to_owned(), source };
        let client = reqwest::Client::builder().timeout(PATIENCE).build().map_err(wrong)?;
        let functions = Self { endpoint: endpoint.trim_end_matches('/').to_owned(), client };
        functions.client.post(functions.url("function")).build().map_err(wrong)?;
        Ok(functions)
    }

    fn url(&self, function: &str) -> String {
        format!("{}/2015-03-31/functions/{function}/invocations", self.endpoint)
    }

    /// Invokes a function and waits for what comes of it.
    pub async fn invoke(&self, function: &str, event: &Value) -> Answer {
        match self.call(function, event).await {
            Ok(answer) => answer,
            Err(error) => Answer::Failed(messages::store::chain(&error)),
        }
    }

    async fn call(&self, function: &str, event: &Value) -> reqwest::Result<Answer> {
        let request = self.client.post(self.url(function)).header(CONTENT_TYPE, "application/json");
        let answer = request.body(event.to_string()).send().await?;
        let (status, failed) = (answer.status(), answer.headers().contains_key(FUNCTION_ERROR));
        let payload = answer.bytes().await?.to_vec();
        if status.is_success() && !failed {
            return Ok(Answer::Payload(payload));
        }
        let shown: String = String::from_utf8_lossy(&payload).chars().take(MAX_SHOWN).collect();
        Ok(Answer::Failed(format!("status {}: {shown}", status.as_u16())))
    }
}
