package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// The buckets of a file and what is in them. Numbers in keys are big endian,
// eight bytes each; parts that are text never hold U+0000, which ends them.
//
//	records  pod 0 name             → life, revision; the record's envelope
//	log      position               → the whole change
//	changes  pod 0 name 0 life rev  → position
//	tails    pod 0 name             → life; the newest entries for changes
//	rows     kind 0 pod 0 name 0 id → the row's value
//	meta     a word                 → a number, or nothing
//
// Every value begins with a seal: the CRC32C of the bucket's name, the key and
// the value's head, which are the numbers before the semicolon. Verification
// checks seals without reading whole values. So a damaged key cannot pass for
// another entity's, and an entity cannot vanish by it; the rest of a value has
// a checksum of its own. What is certainly damage of a value alone passes (see
// valueDamaged), and is told when the value is read.
const (
	recordsBucket = "records"
	logBucket     = "log"
	changesBucket = "changes"
	tailsBucket   = "tails"
	rowsBucket    = "rows"
	metaBucket    = "meta"
)

// buckets lists them all.
func buckets() []string {
	return []string{recordsBucket, logBucket, changesBucket, tailsBucket, rowsBucket, metaBucket}
}

const (
	formatVersion = 3 // the newest that this program knows
	formatFirst   = 1 // of a file without events
	formatEvents  = 2 // of a file that may have events, which older programs would trim
	formatLogged  = 3 // of a file with a commit log in front, which older programs would overlook

	formatKey  = "format"  // meta: the version of this layout
	nextKey    = "next"    // meta: the next position to give
	trimmedKey = "trimmed" // meta: the position up to which changes may have been trimmed
	logKey     = "log"     // meta: the number of the log in front; see persist.Mark
	foldedKey  = "folded"  // meta: through which group that log is folded
	reachedKey = "reached" // meta, with a log in front: a group that it has
	plainKey   = "plain"   // meta, with a log in front: the version that the file has without it
	kindPrefix = "kind\x00"

	sealSize = 4
)

// headSize returns how many bytes of a bucket's values the seal covers, and
// false for a bucket that this layout does not have.
func headSize(bucket string) (int, bool) {
	switch bucket {
	case recordsBucket:
		return 16, true
	case changesBucket, tailsBucket, metaBucket:
		return 8, true
	case logBucket, rowsBucket:
		return 0, true
	}
	return 0, false
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// sum returns the seal of a key and a value's head in a bucket. Names of buckets
// differ in their third letter, with which the sum starts.
func sum(bucket string, key, head []byte) uint32 {
	t := castagnoli()
	return crc32.Update(crc32.Update(uint32(bucket[2]), t, key), t, head)
}

// eventSeal is the seal of an event's entry in the log, which says what it is.
func eventSeal(key []byte) uint32 {
	return crc32.Update('e', castagnoli(), key)
}

// sealed says whether a seal is right.
func sealed(got uint32, bucket string, key, head []byte) bool {
	return got == sum(bucket, key, head) || bucket == logBucket && got == eventSeal(key)
}

// valueDamaged says whether a seal that is wrong tells of damage to the value
// and not to the key: the value is cut off before its head ends, or all zeros
// there, or one bit of the seal or the head is flipped. (One flipped bit of a
// key changes at least three of the seal; for a key of damaged length see
// swallows.) Then the entity, row or change that
// the key names is unreadable, and nothing else is wrong with the file.
func valueDamaged(bucket string, key, value []byte) bool {
	switch bucket {
	case recordsBucket, rowsBucket, logBucket:
	default:
		return false // an index or a number: the file is damaged
	}
	if swallows(bucket, key) {
		return false
	}
	n, _ := headSize(bucket)
	if len(value) < sealSize+n {
		return true
	}
	stored, head := binary.BigEndian.Uint32(value), bytes.Clone(value[sealSize:sealSize+n])
	if stored == 0 && len(bytes.Trim(head, "\x00")) == 0 {
		return true
	}
	if oneBit(stored, sum(bucket, key, head)) || bucket == logBucket && oneBit(stored, eventSeal(key)) {
		return true
	}
	for bit := range 8 * n {
		head[bit/8] ^= 1 << (bit % 8)
		if stored == sum(bucket, key, head) {
			return true
		}
		head[bit/8] ^= 1 << (bit % 8)
	}
	return false
}

// swallows says whether a key goes on into its value: a part of it ends right
// before its own seal. The length of a page's last key can be damaged so, and
// only there: any other would no longer end where the next element begins. What
// is taken for its value then is whatever the page has behind it, zeros too.
func swallows(bucket string, key []byte) bool {
	n, _ := headSize(bucket)
	t := castagnoli()
	before := uint32(bucket[2])
	for m := range key {
		if m+sealSize+n > len(key) {
			break
		}
		stored, head := binary.BigEndian.Uint32(key[m:]), key[m+sealSize:m+sealSize+n]
		if stored == crc32.Update(before, t, head) || bucket == logBucket && stored == eventSeal(key[:m]) {
			return true
		}
		before = crc32.Update(before, t, key[m:m+1])
	}
	return false
}

// oneBit says whether two sums differ in one bit.
func oneBit(a, b uint32) bool { return bits.OnesCount32(a^b) == 1 }

// seal starts a value: room for size more bytes behind seal and head.
func seal(bucket string, key []byte, size int, head ...uint64) []byte {
	v := make([]byte, sealSize, sealSize+8*len(head)+size)
	for _, n := range head {
		v = binary.BigEndian.AppendUint64(v, n)
	}
	binary.BigEndian.PutUint32(v, sum(bucket, key, v[sealSize:]))
	return v
}

// unseal checks a value's seal and returns its head and its body.
func unseal(bucket string, key, value []byte) (head, body []byte, err error) {
	n, _ := headSize(bucket)
	if len(value) < sealSize+n {
		return nil, nil, fmt.Errorf("value of %d bytes is too short: %w", len(value), snapshot.ErrCorrupt)
	}
	head, body = value[sealSize:sealSize+n], value[sealSize+n:]
	if binary.BigEndian.Uint32(value) != sum(bucket, key, head) {
		return nil, nil, fmt.Errorf("key and value do not belong together: %w", snapshot.ErrCorrupt)
	}
	return head, body, nil
}

func recordKey(k persist.Key) []byte {
	b := make([]byte, 0, len(k.Pod)+1+len(k.Name))
	b = append(b, k.Pod...)
	b = append(b, 0)
	return append(b, k.Name...)
}

func changesPrefix(k persist.Key) []byte { return append(recordKey(k), 0) }

func changeKey(prefix []byte, life, revision uint64) []byte {
	b := make([]byte, 0, len(prefix)+16)
	b = append(b, prefix...)
	b = binary.BigEndian.AppendUint64(b, life)
	return binary.BigEndian.AppendUint64(b, revision)
}

// parseChangeKey returns the life and revision at the end of a key that begins
// with the prefix.
func parseChangeKey(prefix, key []byte) (life, revision uint64, err error) {
	if len(key) != len(prefix)+16 {
		return 0, 0, fmt.Errorf("key of a change has %d bytes behind the name, want 16: %w", len(key)-len(prefix), snapshot.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(key[len(prefix):]), binary.BigEndian.Uint64(key[len(prefix)+8:]), nil
}

func positionKey(p uint64) []byte { return binary.BigEndian.AppendUint64(nil, p) }

func positionOf(key []byte) uint64 { return binary.BigEndian.Uint64(key) }

func kindStart(kind string) []byte { return append([]byte(kind), 0) }

func rowsPrefix(kind string, k persist.Key) []byte {
	b := make([]byte, 0, len(kind)+len(k.Pod)+len(k.Name)+3)
	b = append(b, kind...)
	b = append(b, 0)
	b = append(b, k.Pod...)
	b = append(b, 0)
	b = append(b, k.Name...)
	return append(b, 0)
}

func rowKey(kind string, k persist.Key, id string) []byte {
	return append(rowsPrefix(kind, k), id...)
}

func parseRowKey(key []byte) (persist.Row, error) {
	p := bytes.SplitN(key, []byte{0}, 4)
	if len(p) != 4 {
		return persist.Row{}, fmt.Errorf("key of a row has %d parts, want 4: %w", len(p), snapshot.ErrCorrupt)
	}
	return persist.Row{
		Kind: string(p[0]),
		Key:  persist.Key{Pod: string(p[1]), Name: string(p[2])},
		ID:   string(p[3]),
	}, nil
}

// checked appends a body behind its own checksum.
func checked(dst, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(body, castagnoli()))
	return append(dst, body...)
}

// unchecked returns the body behind its checksum. It shares memory with b.
func unchecked(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("value of %d bytes is too short: %w", len(b), snapshot.ErrCorrupt)
	}
	if want, got := binary.BigEndian.Uint32(b), crc32.Checksum(b[4:], castagnoli()); want != got {
		return nil, fmt.Errorf("value's checksum is %08x, its bytes give %08x: %w", want, got, snapshot.ErrCorrupt)
	}
	return b[4:], nil
}
