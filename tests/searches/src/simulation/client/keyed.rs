//! A client with an idempotency key that repeats its request immediately, later and after a crash, and sometimes sends
//! a different request with the same key.

use std::time::Duration;

use futures::future::join_all;
use imports::SearchId;
use service::{AnnouncedSearch, CreateOutcome, Error, NewFile, NewSearch, SearchService};
use simulation::access::short;
use simulation::{Access, Rng, Scene};

use super::{FileIntent, SIZE_BYTES, files_of, project, request, upload};
use crate::simulation::outside::{KeyedAnswer, MAX_KEYED_FILES, Outside};

/// The number of times that a client repeats its request, every ten minutes. Outages are much shorter.
const MAX_REPETITIONS: usize = 100;

/// Usually, the two clients of a schedule have the same key.
const KEYS: [&str; 3] = ["key", "key", "another"];

/// The plan of a client.
#[derive(Debug, Clone)]
struct Intent {
    key: &'static str,
    rounds: Vec<Round>,
    /// The action for each file, regardless of its search.
    files: [FileIntent; MAX_KEYED_FILES],
}

/// The requests that are made concurrently.
#[derive(Debug, Clone)]
struct Round {
    after: Duration,
    requests: Vec<NewSearch>,
}

/// Runs such a client, which starts over after a crash.
pub(super) async fn run(function: SearchService, access: Access<Outside>, mut rng: Rng) {
    let intent = Intent::draw(&mut rng);
    let search = loop {
        match function.keyed_search(project(), intent.key).await {
            Ok(search) => break search,
            Err(_) => access.sleep(Duration::from_secs(600)).await,
        }
    };
    access.with(|scene| {
        scene.note(|| format!("search {} is asked for under a key", short(&search)));
        scene.truth.entry(search).or_default().is_keyed = true;
    });
    for round in &intent.rounds {
        if !round.after.is_zero() {
            access.sleep(round.after).await;
        }
        join_all(round.requests.iter().map(|request| ask(&function, &access, &intent, search, request)))
            .await;
    }
    insist(&function, &access, &intent, search).await;
}

/// Repeats the first request until it is answered; the remains of an earlier attempt must not prevent this. An outage
/// may last longer than the client's repetitions, but a refusal may not last forever.
async fn insist(function: &SearchService, access: &Access<Outside>, intent: &Intent, search: SearchId) {
    let Some(request) = intent.rounds.first().and_then(|round| round.requests.first()) else { return };
    for _ in 0..MAX_REPETITIONS {
        let asked = ask(function, access, intent, search, request).await;
        let is_refused = matches!(&asked, Err(Error::Commit(error)) if error.is_refused());
        access.with(|scene| match is_refused {
            true => scene.unanswered.insert(search),
            false => scene.unanswered.remove(&search),
        });
        if asked.is_ok() {
            return;
        }
        access.sleep(Duration::from_secs(600)).await;
    }
}

async fn ask(
    function: &SearchService,
    access: &Access<Outside>,
    intent: &Intent,
    search: SearchId,
    request: &NewSearch,
) -> Result<(), Error> {
    // The client cannot know the outcome of a failed request, so it gets no answer.
    let answer = function.create_once(project(), request, intent.key).await?;
    access.with(|scene| {
        let told = match &answer {
            CreateOutcome::Announced(announced) => KeyedAnswer::Announced(announced.search_id),
            CreateOutcome::Ended(search) => KeyedAnswer::Ended(*search),
            CreateOutcome::Differs => KeyedAnswer::Differs,
            CreateOutcome::Unknown => KeyedAnswer::Unknown,
        };
        scene
            .note(|| format!("a request for {} files under a key is answered {told:?}", request.files.len()));
        take_note(scene, search, request, told);
        let announced = match answer {
            CreateOutcome::Announced(announced) => announced,
            CreateOutcome::Ended(search_id) => AnnouncedSearch { search_id, files: Vec::new() },
            CreateOutcome::Differs | CreateOutcome::Unknown => return,
        };
        let Some(truth) = scene.truth.get_mut(&search) else { return };
        truth.announced = true;
        for (file, intent) in files_of(search, request.files.len()).zip(&intent.files) {
            truth.files.entry(file).or_insert(intent.quality);
        }
        let qualities = truth.files.clone();
        let begun = &mut scene.uploaded;
        let new = announced.files.iter().map(|form| form.file_id).filter(|file| begun.insert(*file));
        let new: Vec<_> = new.collect();
        upload(scene, &announced, |file| {
            let place = files_of(search, MAX_KEYED_FILES).position(|of| of == file)?;
            let quality = *qualities.get(&file)?;
            new.contains(&file).then_some(FileIntent { quality, ..intent.files[place] })
        });
    });
    Ok(())
}

fn take_note(scene: &mut Scene<'_, Outside>, search: SearchId, request: &NewSearch, told: KeyedAnswer) {
    let answers = scene.told.entry(search).or_default();
    let is_repeated = answers.iter().any(|(known, _)| known == request);
    let differs = answers.iter().any(|(known, _)| known != request);
    answers.push((request.clone(), told));
    if is_repeated {
        scene.meet(super::super::situations::KEY_REPEATED);
    }
    if differs {
        scene.meet(super::super::situations::KEY_SHARED);
    }
}

impl Intent {
    fn draw(rng: &mut Rng) -> Self {
        let key = rng.pick(&KEYS);
        let preferred = rng.index(3);
        let mut after = Duration::ZERO;
        let mut rounds = Vec::new();
        for _ in 0..rng.between(1, 4) {
            let body = |rng: &mut Rng| if rng.one_in(3) { rng.index(3) } else { preferred };
            let requests = (0..rng.between(1, 3)).map(|_| one_of(body(rng))).collect();
            rounds.push(Round { after, requests });
            let (least, max) = rng.pick(&[(0, 100), (100, 5_000), (5_000, 60_000), (60_000, 5_000_000)]);
            after = Duration::from_millis(rng.between(least, max));
        }
        let files = std::array::from_fn(|_| FileIntent::draw(rng));
        Self { key, rounds, files }
    }
}

/// Returns one of three requests: for one file, for a file of the same name with another size, or for two files.
fn one_of(body: usize) -> NewSearch {
    match body {
        0 => request(1),
        1 => {
            let files = vec![NewFile { size_bytes: SIZE_BYTES + 1, ..request(1).files.remove(0) }];
            NewSearch { files, ..request(1) }
        }
        _ => request(MAX_KEYED_FILES),
    }
}
