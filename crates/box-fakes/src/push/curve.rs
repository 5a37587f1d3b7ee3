//! P-256 as a browser needs it (SEC 1, FIPS 186-4 §D.1.2.3): a key that agrees with many others.
//!
//! Written out because the product's own library agrees only once with each key. Slow, and not safe
//! against whoever measures time: for tests alone.

/// Eight words of 32 bits, the least first.
type Number = [u32; 8];

/// 2^256 − 2^224 + 2^192 + 2^96 − 1
const P: Number = [u32::MAX, u32::MAX, u32::MAX, 0, 0, 0, 1, u32::MAX];
const G: Point = Point {
    x: [
        0xd898_c296,
        0xf4a1_3945,
        0x2deb_33a0,
        0x7703_7d81,
        0x63a4_40f2,
        0xf8bc_e6e5,
        0xe12c_4247,
        0x6b17_d1f2,
    ],
    y: [
        0x37bf_51f5,
        0xcbb6_4068,
        0x6b31_5ece,
        0x2bce_3357,
        0x7c0f_9e16,
        0x8ee7_eb4a,
        0xfe1a_7f9b,
        0x4fe3_42e2,
    ],
};
const POINT_BYTES: usize = 65;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    x: Number,
    y: Number,
}

/// The public key of a private one: an uncompressed point.
pub(super) fn public(private: &[u8; 32]) -> Option<[u8; POINT_BYTES]> {
    times(&number(private), Some(G)).map(|point| {
        let mut bytes = [4; POINT_BYTES];
        bytes[1..33].copy_from_slice(&bytes_of(&point.x));
        bytes[33..].copy_from_slice(&bytes_of(&point.y));
        bytes
    })
}

/// What a private key and another's public key share: the x coordinate (SEC 1 §3.3.1).
pub(super) fn shared(private: &[u8; 32], public: &[u8]) -> Option<[u8; 32]> {
    let (&4, rest) = public.split_first()? else {
        return None;
    };
    let (x, y) = (rest.get(..32)?, rest.get(32..)?);
    let point = Point {
        x: number(x.try_into().ok()?),
        y: number(y.try_into().ok()?),
    };
    let found = times(&number(private), Some(point).filter(is_on_curve));
    found.map(|point| bytes_of(&point.x))
}

/// y² = x³ − 3x + b
fn is_on_curve(point: &Point) -> bool {
    const B: Number = [
        0x27d2_604b,
        0x3bce_3c3e,
        0xcc53_b0f6,
        0x651d_06b0,
        0x7698_86bc,
        0xb3eb_bd55,
        0xaa3a_93e7,
        0x5ac6_35d8,
    ];
    let x = &point.x;
    let three_x = add(&add(x, x), x);
    let cube = multiply(&multiply(x, x), x);
    multiply(&point.y, &point.y) == add(&subtract(&cube, &three_x), &B)
}

/// A point as (X/Z², Y/Z³): sums need no inversion. Z is 0 at infinity.
#[derive(Debug, Clone, Copy)]
struct Projective {
    x: Number,
    y: Number,
    z: Number,
}

const ONE: Number = [1, 0, 0, 0, 0, 0, 0, 0];
const ZERO: Number = [0; 8];
const INFINITY: Projective = Projective {
    x: ONE,
    y: ONE,
    z: ZERO,
};

fn times(scalar: &Number, point: Option<Point>) -> Option<Point> {
    let point = point?;
    let mut sum = INFINITY;
    for word in scalar.iter().rev() {
        for bit in (0..32).rev() {
            sum = doubled(&sum);
            if word >> bit & 1 == 1 {
                sum = plus(&sum, &point);
            }
        }
    }
    if sum.z == ZERO {
        return None;
    }
    let inverse = invert(&sum.z);
    let square = multiply(&inverse, &inverse);
    Some(Point {
        x: multiply(&sum.x, &square),
        y: multiply(&sum.y, &multiply(&square, &inverse)),
    })
}

/// `dbl-2001-b` of the Explicit-Formulas Database.
fn doubled(one: &Projective) -> Projective {
    let delta = multiply(&one.z, &one.z);
    let gamma = multiply(&one.y, &one.y);
    let beta = multiply(&one.x, &gamma);
    let alpha = multiply(&subtract(&one.x, &delta), &add(&one.x, &delta));
    let alpha = add(&add(&alpha, &alpha), &alpha);
    let four = add(&add(&beta, &beta), &add(&beta, &beta));
    let x = subtract(&multiply(&alpha, &alpha), &add(&four, &four));
    let both = add(&one.y, &one.z);
    let z = subtract(&subtract(&multiply(&both, &both), &gamma), &delta);
    let square = multiply(&gamma, &gamma);
    let square = add(&square, &square);
    let square = add(&square, &square);
    let y = multiply(&alpha, &subtract(&four, &x));
    let y = subtract(&y, &add(&square, &square));
    Projective { x, y, z }
}

/// `madd` of the same: the other point has Z = 1.
fn plus(one: &Projective, other: &Point) -> Projective {
    if one.z == ZERO {
        return Projective {
            x: other.x,
            y: other.y,
            z: ONE,
        };
    }
    let square = multiply(&one.z, &one.z);
    let apart = subtract(&multiply(&other.x, &square), &one.x);
    let rise = multiply(&other.y, &multiply(&one.z, &square));
    let rise = subtract(&rise, &one.y);
    if apart == ZERO {
        return if rise == ZERO { doubled(one) } else { INFINITY };
    }
    let apart_2 = multiply(&apart, &apart);
    let apart_3 = multiply(&apart, &apart_2);
    let mid = multiply(&one.x, &apart_2);
    let x = subtract(&multiply(&rise, &rise), &apart_3);
    let x = subtract(&x, &add(&mid, &mid));
    let y = multiply(&rise, &subtract(&mid, &x));
    Projective {
        y: subtract(&y, &multiply(&one.y, &apart_3)),
        x,
        z: multiply(&one.z, &apart),
    }
}

fn number(bytes: &[u8; 32]) -> Number {
    let mut words = [0; 8];
    for (word, four) in words.iter_mut().rev().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*four);
    }
    words
}

fn bytes_of(number: &Number) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (four, word) in bytes
        .as_chunks_mut::<4>()
        .0
        .iter_mut()
        .zip(number.iter().rev())
    {
        *four = word.to_be_bytes();
    }
    bytes
}

fn add(one: &Number, other: &Number) -> Number {
    let sums = one.iter().zip(other);
    reduced(sums.map(|(a, b)| i64::from(*a) + i64::from(*b)))
}

fn subtract(one: &Number, other: &Number) -> Number {
    let differences = one.iter().zip(other);
    reduced(differences.map(|(a, b)| i64::from(*a) - i64::from(*b)))
}

fn multiply(one: &Number, other: &Number) -> Number {
    let mut wide = [0u32; 16];
    for (place, a) in one.iter().enumerate() {
        let mut carry = 0u64;
        for (word, b) in wide[place..].iter_mut().zip(other) {
            let sum = u64::from(*word) + u64::from(*a) * u64::from(*b) + carry;
            *word = low(sum);
            carry = sum >> 32;
        }
        wide[place + 8] = low(carry);
    }
    let c = wide.map(i64::from);
    // FIPS 186-4 §D.2.3, by columns.
    let columns = [
        c[0] + c[8] + c[9] - c[11] - c[12] - c[13] - c[14],
        c[1] + c[9] + c[10] - c[12] - c[13] - c[14] - c[15],
        c[2] + c[10] + c[11] - c[13] - c[14] - c[15],
        c[3] + 2 * (c[11] + c[12]) + c[13] - c[15] - c[8] - c[9],
        c[4] + 2 * (c[12] + c[13]) + c[14] - c[9] - c[10],
        c[5] + 2 * (c[13] + c[14]) + c[15] - c[10] - c[11],
        c[6] + 3 * c[14] + 2 * c[15] + c[13] - c[8] - c[9],
        c[7] + 3 * c[15] + c[8] - c[10] - c[11] - c[12] - c[13],
    ];
    reduced(columns.into_iter())
}

/// Fermat: a^(p−2).
fn invert(number: &Number) -> Number {
    let mut exponent = P;
    exponent[0] -= 2;
    let mut power = [1, 0, 0, 0, 0, 0, 0, 0];
    for word in exponent.iter().rev() {
        for bit in (0..32).rev() {
            power = multiply(&power, &power);
            if word >> bit & 1 == 1 {
                power = multiply(&power, number);
            }
        }
    }
    power
}

/// The number these columns stand for, modulo p.
fn reduced(columns: impl Iterator<Item = i64>) -> Number {
    let mut words = [0; 8];
    let mut carry = 0;
    for (word, column) in words.iter_mut().zip(columns) {
        carry += column;
        *word = low(carry.cast_unsigned());
        carry >>= 32;
    }
    while carry < 0 {
        carry += over(&mut words, |word, p| word + p);
    }
    while carry > 0 || words.iter().rev().ge(P.iter().rev()) {
        carry += over(&mut words, |word, p| word - p);
    }
    words
}

/// Adds or takes away p; answers what is carried out of the last word.
fn over(words: &mut Number, act: fn(i64, i64) -> i64) -> i64 {
    let mut carry = 0;
    for (word, p) in words.iter_mut().zip(P) {
        carry += act(i64::from(*word), i64::from(p));
        *word = low(carry.cast_unsigned());
        carry >>= 32;
    }
    carry
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
fn low(wide: u64) -> u32 {
    wide as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    /// RFC 8291 appendix A.
    #[test]
    fn the_keys_of_the_rfc_share_its_secret() {
        let browser: [u8; 32] = bytes("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")
            .try_into()
            .unwrap();
        let sender: [u8; 32] = bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")
            .try_into()
            .unwrap();
        let secret = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let (ours, theirs) = (public(&browser).unwrap(), public(&sender).unwrap());
        let known = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
        assert_eq!(ours.to_vec(), bytes(known));
        assert_eq!(shared(&browser, &theirs).unwrap().to_vec(), secret);
        assert_eq!(shared(&sender, &ours).unwrap().to_vec(), secret);
        let mut off = ours;
        off[64] ^= 1;
        assert_eq!(shared(&sender, &off), None);
    }
}
