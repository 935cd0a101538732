//! The contract of [`WriteViews`] and [`outbox::ReadViews`], and of the [`Views`] that read them together with
//! documents.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{try_join, try_join_all};
use jiff::{SignedDuration, Timestamp};
use messages::{Host, PartitionKey, StoreError};
use outbox::{AgeFilter, FieldFilter, Page, View, ViewPosition, WriteViews};
use saga::{Views, WriteDocuments};
use serde_json::json;
use uuid::Uuid;

use crate::sample::Samples;
use crate::{CheckResult, sample};

/// The adapter under test.
pub struct Ports<'a> {
    /// Reads documents and written views.
    pub views: &'a Views<Samples>,
    /// Writes.
    pub write: &'a dyn WriteViews,
    /// Stores documents.
    pub documents: &'a dyn WriteDocuments,
    /// Ids and time.
    pub host: &'a dyn Host,
}

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    an_absent_view_is_none(ports).await?;
    later_revision_replaces_earlier(ports).await?;
    outdated_or_repeated_write_changes_nothing(ports).await?;
    views_of_one_call_are_independent(ports).await?;
    unfinished_views_start_with_the_oldest(ports).await?;
    unfinished_views_are_read_up_to_limit(ports).await?;
    list_pages_start_with_the_latest(ports).await?;
    views_are_paged_by_age(ports).await?;
    views_are_found_by_fields(ports).await?;
    further_lists_contain_view(ports).await?;
    later_revision_changes_lists(ports).await?;
    changes_are_read_in_order_of_writes(ports).await?;
    rewritten_view_counts_as_change(ports).await?;
    removed_view_is_reported_to_its_list(ports).await?;
    no_reader_misses_concurrent_writes(ports).await?;
    document_overrides_an_older_view(ports).await?;
    unreadable_document_does_not_hide_a_list(ports).await
}

/// A partition without a view has none.
pub async fn an_absent_view_is_none(ports: &Ports<'_>) -> CheckResult {
    assert_eq!(ports.views.written.view(sample::partition(ports.host)).await?, None);
    Ok(())
}

/// The revision determines the current view, and nothing of the earlier one remains.
pub async fn later_revision_replaces_earlier(ports: &Ports<'_>) -> CheckResult {
    let partition = sample::partition(ports.host);
    for (revision, ended) in [(0, false), (1, false), (7, true)] {
        let mut view = sample::view(ports.host, partition, revision, ended);
        view.body[revision.to_string()] =
            json!({ "only": ["here", null], "extended": { "$numberLong": "5" } });
        view.list = ports.host.fresh_id();
        // Stores keep milliseconds, which order the views of one second.
        view.created_at = sample::later(view.created_at, -1) + SignedDuration::from_millis(250);
        ports.write.write(std::slice::from_ref(&view)).await?;
        assert_eq!(ports.views.written.view(partition).await?, Some(view));
    }
    Ok(())
}

/// Writes may be repeated and reordered.
pub async fn outdated_or_repeated_write_changes_nothing(ports: &Ports<'_>) -> CheckResult {
    let partition = sample::partition(ports.host);
    let stored = sample::view(ports.host, partition, 5, true);
    ports.write.write(std::slice::from_ref(&stored)).await?;
    for revision in [4, 5] {
        let late = sample::view(ports.host, partition, revision, false);
        ports.write.write(&[late]).await?;
        let found = ports.views.written.view(partition).await?;
        assert_eq!(found.as_ref(), Some(&stored), "revision {revision} came late");
    }
    Ok(())
}

/// An outdated view does not affect the others, and one call may contain two views of a partition.
pub async fn views_of_one_call_are_independent(ports: &Ports<'_>) -> CheckResult {
    let (one, two) = (sample::partition(ports.host), sample::partition(ports.host));
    let view = |partition, revision| sample::view(ports.host, partition, revision, false);
    ports.write.write(&[view(one, 3)]).await?;
    ports.write.write(&[view(one, 2), view(two, 1), view(two, 2)]).await?;
    let revision =
        async |partition| ports.views.written.view(partition).await.map(|view| view.map(|it| it.revision));
    assert_eq!((revision(one).await?, revision(two).await?), (Some(3), Some(2)));
    Ok(())
}

/// Ended views are not included.
pub async fn unfinished_views_start_with_the_oldest(ports: &Ports<'_>) -> CheckResult {
    let ids: Vec<PartitionKey> = (0..4).map(|_| sample::partition(ports.host)).collect();
    let mut views = Vec::new();
    for (n, (id, ended)) in ids.iter().zip([false, false, true, true]).enumerate() {
        let mut view = sample::view(ports.host, *id, 1, ended);
        // The second view is older than the first.
        view.created_at = sample::later(view.created_at, -(n as i64));
        views.push(view);
    }
    ports.write.write(&views).await?;
    let listed = ports.views.written.unfinished().await?;
    let ours: Vec<View> = listed.into_iter().filter(|view| ids.contains(&view.partition)).collect();
    assert_eq!(ours, views.into_iter().take(2).rev().collect::<Vec<_>>());
    for limit in [0, 1] {
        let first = ports.views.written.oldest_unfinished(limit).await?;
        assert_eq!(first, ports.views.written.unfinished().await?[..limit]);
    }
    Ok(())
}

/// The limit applies to the views of one list.
pub async fn unfinished_views_are_read_up_to_limit(ports: &Ports<'_>) -> CheckResult {
    let [list, other] = [ports.host.fresh_id(), ports.host.fresh_id()];
    let mut views = Vec::new();
    for (list, ended) in [(list, false), (list, true), (other, false), (list, false)] {
        let view = sample::view(ports.host, sample::partition(ports.host), 1, ended);
        views.push(View { list, ..view });
    }
    ports.write.write(&views).await?;
    let read = async |limit| ports.views.written.unfinished_of(list, limit).await;
    let mut found = read(10).await?;
    found.sort_by_key(|view| view.partition);
    assert_eq!(found, [views[0].clone(), views[3].clone()]);
    assert_eq!((read(1).await?.len(), read(0).await?.len()), (1, 0));
    for (limit, count) in [(10, 2), (2, 2), (1, 1), (0, 0)] {
        assert_eq!(ports.views.written.count_unfinished_of(list, limit).await?, count);
    }
    Ok(())
}

/// Each view is returned once, without the views of other lists.
pub async fn list_pages_start_with_the_latest(ports: &Ports<'_>) -> CheckResult {
    let list = ports.host.fresh_id();
    let mut views = Vec::new();
    for n in 0..5 {
        let partition = sample::partition(ports.host);
        let mut view = View { list, ..sample::view(ports.host, partition, 1, true) };
        // Two views of the same time are ordered by id.
        view.created_at = sample::later(view.created_at, -(n / 2));
        views.push(view);
    }
    ports.write.write(&views).await?;
    ports.write.write(&[sample::view(ports.host, sample::partition(ports.host), 1, true)]).await?;
    views.sort_by_key(|view| std::cmp::Reverse((view.created_at, view.partition)));
    let (mut listed, mut sizes, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let page = ports.views.written.list(list, after, 2).await?;
        sizes.push(page.items.len());
        listed.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!((listed, sizes), (views, vec![2, 2, 1]));
    let nobodys = ports.host.fresh_id();
    assert_eq!(ports.views.written.list(nobodys, None, 2).await?, Page { items: Vec::new(), next: None });
    Ok(())
}

/// Every matching view is returned once, in pages that are full until the last one.
pub async fn views_are_found_by_fields(ports: &Ports<'_>) -> CheckResult {
    let list = ports.host.fresh_id();
    let mut views = Vec::new();
    for n in 0..7 {
        let mut view = View { list, ..sample::view(ports.host, sample::partition(ports.host), 1, true) };
        view.created_at = sample::later(view.created_at, -n);
        view.body = json!({ "order": { "color": if n % 2 == 0 { "red" } else { "blue" }, "items": n } });
        views.push(view);
    }
    ports.write.write(&views).await?;
    let age = AgeFilter { list: Some(list), ended: true, before: Timestamp::MAX };
    let find = async |fields: &FieldFilter| {
        let (mut found, mut sizes, mut after) = (Vec::new(), Vec::new(), None);
        loop {
            let page = ports.views.written.matching(&age, fields, after, 3).await?;
            sizes.push(page.items.len());
            found.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok::<_, StoreError>((found, sizes));
            }
        }
    };
    let red = FieldFilter::default().and("order.color", "red");
    let reds: Vec<View> = views.iter().step_by(2).cloned().collect();
    assert_eq!(find(&red).await?, (reds, vec![3, 1]));
    let blue = FieldFilter::default().and("order.color", "blue");
    assert_eq!(find(&blue).await?.0.len(), 3);
    assert_eq!(find(&red.and("order.items", "4")).await?, (vec![views[4].clone()], vec![1]));
    assert_eq!(find(&FieldFilter::default()).await?, (views.clone(), vec![3, 3, 1]));
    let shown = ports.views.matching(&age, &blue, None, 10).await?;
    assert_eq!(shown.items, [views[1].clone(), views[3].clone(), views[5].clone()]);
    Ok(())
}

/// Returns all views that a list contains, page by page.
async fn listed(ports: &Ports<'_>, list: Uuid) -> Result<Vec<View>, StoreError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = ports.views.list(list, after, 2).await?;
        assert!(page.items.len() == 2 || page.next.is_none(), "{page:?}");
        found.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// A list contains the views that belong to it, and the views for which it is a further list. Each view is listed once
/// and in order. The changes of a list contain only views that belong to the list.
pub async fn further_lists_contain_view(ports: &Ports<'_>) -> CheckResult {
    let [list, further, empty] = [(); 3].map(|()| ports.host.fresh_id());
    let mut views = Vec::new();
    for n in 0..6 {
        let mut view = sample::view(ports.host, sample::partition(ports.host), 1, n % 2 == 0);
        // Two views of the same time are ordered by id.
        view.created_at = sample::later(view.created_at, -(n / 2));
        (view.list, view.also_in) = match n {
            0 | 3 => (further, BTreeSet::new()),
            // The view's own list is not a further list as well.
            1 => (list, BTreeSet::from([list, further])),
            _ => (list, BTreeSet::from([further])),
        };
        view.body = json!({ "n": n });
        views.push(view);
    }
    ports.write.write(&views).await?;
    views.sort_by_key(|view| std::cmp::Reverse((view.created_at, view.partition)));
    let bodies = |views: &[View]| views.iter().map(|view| view.body.clone()).collect::<Vec<_>>();
    let own: Vec<View> = views.iter().filter(|view| view.list == list).cloned().collect();
    assert_eq!(bodies(&listed(ports, further).await?), bodies(&views));
    assert_eq!(bodies(&listed(ports, list).await?), bodies(&own));
    assert_eq!(listed(ports, empty).await?, []);
    further_list_is_filtered(ports, further, &views).await?;
    let unfinished = ports.views.written.unfinished_of(further, 9).await?;
    assert!(unfinished.iter().all(|view| view.list == further), "{unfinished:?}");
    assert_eq!(changes(ports, further, 0, 9).await?.len(), 2);
    Ok(())
}

/// `views` starts with the latest.
async fn further_list_is_filtered(ports: &Ports<'_>, list: Uuid, views: &[View]) -> CheckResult {
    for ended in [false, true] {
        let mut meant: Vec<_> =
            views.iter().filter(|view| view.ended == ended).map(|view| &view.body).collect();
        if !ended {
            meant.reverse();
        }
        let aged = AgeFilter { list: Some(list), ended, before: Timestamp::MAX };
        let found = by_age(ports, &aged, 2).await?;
        assert_eq!(found.iter().map(|view| &view.body).collect::<Vec<_>>(), meant, "{aged:?}");
        let one = FieldFilter::default().and("n", if ended { "4" } else { "5" });
        assert_eq!(ports.views.matching(&aged, &one, None, 9).await?.items.len(), 1);
    }
    Ok(())
}

/// A list that a later revision leaves does not contain the view any more, neither does one of an outdated write.
pub async fn later_revision_changes_lists(ports: &Ports<'_>) -> CheckResult {
    let [own, left, kept, joined] = [(); 4].map(|()| ports.host.fresh_id());
    let partition = sample::partition(ports.host);
    let at = |revision, list, also_in: &[Uuid]| {
        let view = sample::view(ports.host, partition, revision, false);
        View { list, also_in: also_in.iter().copied().collect(), ..view }
    };
    let first = at(1, own, &[left, kept]);
    let second = View { created_at: sample::later(first.created_at, 1), ..at(2, own, &[kept, joined]) };
    for view in [&first, &second, &first, &second] {
        ports.write.write(std::slice::from_ref(view)).await?;
    }
    let is_in = async |lists: &[Uuid]| {
        let mut found = Vec::new();
        for list in lists {
            found.push(listed(ports, *list).await?);
        }
        Ok::<_, StoreError>(found)
    };
    let once = || vec![second.clone()];
    assert_eq!(is_in(&[own, left, kept, joined]).await?, [once(), Vec::new(), once(), once()]);
    // A further list becomes the view's own list, and the own list becomes a further list.
    let third = at(3, kept, &[own]);
    ports.write.write(std::slice::from_ref(&third)).await?;
    let once = || vec![third.clone()];
    assert_eq!(is_in(&[own, left, kept, joined]).await?, [once(), Vec::new(), once(), Vec::new()]);
    ports.write.write(&[View::removed(partition, kept)]).await?;
    assert_eq!(is_in(&[own, left, kept, joined]).await?, [const { Vec::new() }; 4]);
    Ok(())
}

/// Returns the changes that a reader finds page by page.
async fn changes(
    ports: &Ports<'_>,
    list: Uuid,
    since: u64,
    limit: usize,
) -> Result<Vec<(ViewPosition, View)>, StoreError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = ports.views.written.changed(list, since, after, limit).await?;
        assert!(page.len() <= limit);
        let Some((last, _)) = page.last() else { return Ok(found) };
        after = Some(*last);
        found.extend(page);
    }
}

/// Ended views start with the latest, and unfinished ones with the oldest, for one list or for all.
pub async fn views_are_paged_by_age(ports: &Ports<'_>) -> CheckResult {
    let (list, begin) = (ports.host.fresh_id(), sample::later(sample::now(ports.host), -3_600));
    let mut views = Vec::new();
    for n in 0..5 {
        for ended in [false, true] {
            let view = View { list, ..sample::view(ports.host, sample::partition(ports.host), 1, ended) };
            // Two views of the same time are ordered by id.
            views.push(View { created_at: sample::later(begin, n / 2), ..view });
        }
    }
    ports.write.write(&views).await?;
    ports.write.write(&[View { list: ports.host.fresh_id(), created_at: begin, ..views[0].clone() }]).await?;
    views.sort_by_key(|view| (view.created_at, view.partition));
    for ended in [false, true] {
        for before in [begin, sample::later(begin, 1), Timestamp::MAX] {
            let is_meant = |view: &&View| view.ended == ended && view.created_at < before;
            let mut meant: Vec<View> = views.iter().filter(is_meant).cloned().collect();
            if ended {
                meant.reverse();
            }
            let aged = AgeFilter { list: Some(list), ended, before };
            assert_eq!(by_age(ports, &aged, 2).await?, meant, "{aged:?}");
            // Other lists may contain further views.
            let mut of_all = by_age(ports, &AgeFilter { list: None, ..aged }, 1_000).await?;
            of_all.retain(|view| view.list == list);
            assert_eq!(of_all, meant, "{aged:?} of all");
        }
    }
    Ok(())
}

/// Returns all selected views, page by page.
async fn by_age(ports: &Ports<'_>, meant: &AgeFilter, limit: usize) -> Result<Vec<View>, StoreError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = ports.views.written.by_age(meant, after, limit).await?;
        assert!(page.items.len() <= limit);
        found.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(found),
        }
    }
}

fn shown(found: &[(ViewPosition, View)]) -> Vec<View> {
    found.iter().map(|(_, view)| view.clone()).collect()
}

/// The changes since a position are all unfinished views, and the ended views written after it. Each view is returned
/// once, for any page size.
pub async fn changes_are_read_in_order_of_writes(ports: &Ports<'_>) -> CheckResult {
    let (list, written) = (ports.host.fresh_id(), &ports.views.written);
    assert_eq!((written.last_written(list).await?, changes(ports, list, 0, 10).await?), (0, Vec::new()));
    let view = |ended| View { list, ..sample::view(ports.host, sample::partition(ports.host), 1, ended) };
    let views = [view(false), view(true), view(true)];
    for view in &views {
        ports.write.write(std::slice::from_ref(view)).await?;
    }
    let found = changes(ports, list, 0, 10).await?;
    assert_eq!(shown(&found), views);
    assert!(found.iter().is_sorted_by(|(one, _), (other, _)| one < other), "{found:?}");
    for limit in [1, 2, 3] {
        assert_eq!(changes(ports, list, 0, limit).await?, found);
    }
    let [open, _, third] = views;
    let (second, last) = (found[1].0.at, found[2].0.at);
    assert_eq!((written.last_written(list).await?, written.settled(last) <= last), (last, true));
    assert_eq!(shown(&changes(ports, list, second, 1).await?), [open.clone(), third]);
    assert_eq!(shown(&changes(ports, list, last, 1).await?), [open]);
    Ok(())
}

/// The rewritten view follows all earlier changes. A write without a change does not count, and neither does a write in
/// another list.
pub async fn rewritten_view_counts_as_change(ports: &Ports<'_>) -> CheckResult {
    let (list, written) = (ports.host.fresh_id(), &ports.views.written);
    let view = |revision, ended| View {
        list,
        ..sample::view(ports.host, sample::partition(ports.host), revision, ended)
    };
    let (open, ended) = (view(1, false), view(1, true));
    ports.write.write(&[open.clone(), ended.clone()]).await?;
    let last = written.last_written(list).await?;
    let late = View { revision: 0, ended: true, ..open.clone() };
    ports.write.write(&[late, ended.clone()]).await?;
    ports.write.write(&[View { list: ports.host.fresh_id(), ..view(1, false) }]).await?;
    assert_eq!(
        (written.last_written(list).await?, written.changed(list, last, None, 10).await?.len()),
        (last, 1)
    );
    let later = View { revision: 2, ended: true, ..open };
    ports.write.write(std::slice::from_ref(&later)).await?;
    assert_eq!(shown(&changes(ports, list, last, 10).await?), std::slice::from_ref(&later));
    assert_eq!(shown(&changes(ports, list, 0, 10).await?), [ended, later], "and once");
    Ok(())
}

/// Readers of the list receive the removal.
pub async fn removed_view_is_reported_to_its_list(ports: &Ports<'_>) -> CheckResult {
    let (list, partition) = (ports.host.fresh_id(), sample::partition(ports.host));
    let view = View { list, ..sample::view(ports.host, partition, 1, true) };
    ports.write.write(&[view]).await?;
    let since = ports.views.written.last_written(list).await?;
    assert_eq!(ports.views.changed(list, since, None, 10).await?, []);
    let removed = View::removed(partition, list);
    ports.write.write(std::slice::from_ref(&removed)).await?;
    let found = ports.views.changed(list, since, None, 10).await?;
    assert_eq!(found.into_iter().map(|(_, view)| view).collect::<Vec<_>>(), [removed]);
    assert_eq!(ports.views.written.list(list, None, 10).await?.items, []);
    Ok(())
}

/// A client reads while others write, and resumes at the position up to which all changes are known.
pub async fn no_reader_misses_concurrent_writes(ports: &Ports<'_>) -> CheckResult {
    const WRITERS: usize = 8;
    const EACH: usize = 10;
    let (list, written) = (ports.host.fresh_id(), &ports.views.written);
    let left = AtomicUsize::new(WRITERS);
    let write = async || {
        for _ in 0..EACH {
            let view = sample::view(ports.host, sample::partition(ports.host), 1, true);
            ports.write.write(&[View { list, ..view }]).await?;
        }
        left.fetch_sub(1, Ordering::Relaxed);
        Ok::<_, StoreError>(())
    };
    let read = async {
        let (mut seen, mut since) = (BTreeSet::new(), 0);
        loop {
            let is_last = left.load(Ordering::Relaxed) == 0;
            let found = changes(ports, list, since, 7).await?;
            seen.extend(found.iter().map(|(place, _)| place.partition));
            since = found.last().map_or(since, |(last, _)| since.max(written.settled(last.at)));
            if is_last {
                return Ok::<_, StoreError>(seen.len());
            }
        }
    };
    let (seen, _) = try_join(read, try_join_all((0..WRITERS).map(|_| write()))).await?;
    assert_eq!(seen, WRITERS * EACH);
    Ok(())
}

/// Views are written with a delay, so a later document overrides them, also in lists; an earlier one does not.
pub async fn document_overrides_an_older_view(ports: &Ports<'_>) -> CheckResult {
    let (partition, now) = (sample::partition(ports.host), sample::now(ports.host));
    let seen =
        async || ports.views.view(partition).await.map(|view| view.map(|view| (view.revision, view.ended)));
    let created = sample::persist(partition, None, sample::content(ports.host, "documented"));
    ports.documents.persist(&[created], now).await?;
    assert_eq!(seen().await?, Some((1, false)), "no view was written yet");
    let end = sample::ended(ports.host, now);
    let list = sample::list_of(&end)?;
    let written = |revision, ended| View { list, ..sample::view(ports.host, partition, revision, ended) };
    ports.write.write(&[written(0, false)]).await?;
    assert_eq!(seen().await?, Some((1, false)), "the written view is older than the document");
    let ended = sample::persist(partition, Some(1), end);
    ports.documents.persist(&[ended], now).await?;
    assert_eq!(seen().await?, Some((2, true)));
    assert_eq!(revisions(&listed(ports, list).await?), [(partition, 2)], "in a list too");
    let unfinished = ports.views.unfinished().await?;
    assert!(!unfinished.iter().any(|view| view.partition == partition), "it has ended, by its document");
    ports.write.write(&[written(3, true)]).await?;
    assert_eq!(seen().await?, Some((3, true)), "the document is older than the written view");
    Ok(())
}

/// A list shows its written view; reading it directly is an error.
pub async fn unreadable_document_does_not_hide_a_list(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let (foreign, sound) = (sample::partition(ports.host), sample::partition(ports.host));
    let readable = sample::content(ports.host, "sound");
    let list = sample::list_of(&readable)?;
    let written = |partition| View { list, ..sample::view(ports.host, partition, 0, false) };
    ports.write.write(&[written(foreign), written(sound)]).await?;
    let content = sample::with_state(ports.host, json!("not a state of this saga"));
    let documents = [sample::persist(foreign, None, content), sample::persist(sound, None, readable)];
    ports.documents.persist(&documents, now).await?;
    assert_eq!(revisions(&listed(ports, list).await?), [(sound, 1), (foreign, 0)]);
    let unfinished = ports.views.unfinished().await?;
    assert_eq!(unfinished.iter().filter(|view| [foreign, sound].contains(&view.partition)).count(), 2);
    assert!(ports.views.view(foreign).await.is_err());
    assert_eq!(ports.views.view(sound).await?.map(|view| view.revision), Some(1));
    Ok(())
}

fn revisions(views: &[View]) -> Vec<(PartitionKey, u64)> {
    views.iter().map(|view| (view.partition, view.revision)).collect()
}
