//! The division of messages into batches.

use messages::queue::MAX_BATCH;

use crate::queues::attributes::MAX_BYTES;

/// Packs items of these sizes into batches, in order: at most [`MAX_BATCH`] items and [`MAX_BYTES`] each. A message
/// that exceeds the maximum size of a batch gets its own batch, so that only this message is refused.
pub(crate) fn pack<T>(items: impl IntoIterator<Item = T>, bytes: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let mut batches: Vec<Vec<T>> = Vec::new();
    let mut filled = 0;
    for item in items {
        let size = bytes(&item);
        match batches.last_mut() {
            Some(batch) if batch.len() < MAX_BATCH && filled + size <= MAX_BYTES => {
                batch.push(item);
                filled += size;
            }
            Some(_) | None => {
                batches.push(vec![item]);
                filled = size;
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(items: &[usize]) -> Vec<Vec<usize>> {
        pack(items.iter().copied(), |size| *size)
    }

    #[test]
    fn batch_has_at_most_ten_items() {
        let lengths: Vec<usize> = sizes(&[1; 25]).iter().map(Vec::len).collect();
        assert_eq!(lengths, [10, 10, 5]);
    }

    #[test]
    fn batch_fills_its_byte_limit() {
        let half = MAX_BYTES / 2;
        assert_eq!(sizes(&[half, half, 1]), [vec![half, half], vec![1]]);
        assert_eq!(sizes(&[half, half + 1]), [vec![half], vec![half + 1]]);
    }

    #[test]
    fn oversized_item_has_its_own_batch() {
        assert_eq!(sizes(&[1, MAX_BYTES + 1, 2]), [vec![1], vec![MAX_BYTES + 1], vec![2]]);
        assert_eq!(sizes(&[]), Vec::<Vec<usize>>::new());
    }
}
