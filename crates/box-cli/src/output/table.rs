//! Columns for a person: as wide as their longest cell, two spaces apart.

/// Lines of a table; the first row is the heading.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// `1.4 GB`, in powers of ten as disks are sold.
pub(crate) fn bytes(count: u64) -> String {
    let steps = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let Some((unit, name)) = steps.into_iter().find(|(unit, _)| count >= *unit) else {
        return format!("{count} B");
    };
    let tenths = count / (unit / 10);
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// `4 GiB`, for limits, which are given in powers of two.
pub(crate) fn binary_bytes(count: u64) -> String {
    let steps = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let even = steps
        .into_iter()
        .find(|(unit, _)| count >= *unit && count.is_multiple_of(*unit));
    even.map_or_else(
        || format!("{count} B"),
        |(unit, name)| format!("{} {name}", count / unit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let rows = [
            vec!["NAME".to_owned(), "STATE".to_owned()],
            vec!["d".to_owned(), "up".to_owned()],
        ];
        assert_eq!(columns(&rows), "NAME  STATE\nd     up\n");
        assert_eq!(columns(&[]), "");
    }

    #[test]
    fn sizes_read_like_words() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_449_000_000), "1.4 GB");
        assert_eq!(binary_bytes(4 << 30), "4 GiB");
        assert_eq!(binary_bytes(1536 << 20), "1536 MiB");
    }
}
