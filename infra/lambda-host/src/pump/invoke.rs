//! Invoking a function with Lambda's own call
//! (<https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html>).

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use super::answer::Answer;

/// The timeout of an invocation: the maximum duration of a function
/// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>) plus the time in which an emulator
/// builds it.
const TIMEOUT: Duration = Duration::from_secs(3_600);
/// The header by which Lambda reports that the function failed.
const FUNCTION_ERROR: &str = "x-amz-function-error";
/// The maximum length of a reported failure, in characters.
const MAX_SHOWN: usize = 500;

/// The error of an invalid endpoint.
#[derive(Debug, thiserror::Error)]
#[error("{endpoint} is not a valid endpoint")]
pub struct InvalidEndpoint {
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
    /// Returns the functions at an address such as `http://127.0.0.1:9000`.
    ///
    /// # Errors
    /// Returns an error if the text is not the address of an HTTP server.
    pub fn at(endpoint: &str) -> Result<Self, InvalidEndpoint> {
        let wrong = |source| InvalidEndpoint { endpoint: endpoint.to_owned(), source };
        let client = reqwest::Client::builder().timeout(TIMEOUT).build().map_err(wrong)?;
        let functions = Self { endpoint: endpoint.trim_end_matches('/').to_owned(), client };
        functions.client.post(functions.url("function")).build().map_err(wrong)?;
        Ok(functions)
    }

    fn url(&self, function: &str) -> String {
        format!("{}/2015-03-31/functions/{function}/invocations", self.endpoint)
    }

    /// Invokes a function and waits for the result.
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
