package filter

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/twinsrv/twinsrv/snapshot"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// The msgpack functions read encoded values where they stand, without building
// anything. Positions are bytes of the whole state; -1 says that the bytes are
// no msgpack. Nothing that the input claims is trusted further than its length.

// msgpackHead reads the first bytes of a value: its size without the values
// inside it, and how many of these there are.
func msgpackHead(b []byte, pos int) (size, inner int) {
	c := b[pos]
	switch {
	case c < 0x80 || c >= 0xe0:
		return 1, 0
	case c < 0x90:
		return 1, 2 * int(c&0x0f)
	case c < 0xa0:
		return 1, int(c & 0x0f)
	case c < 0xc0:
		return 1 + int(c&0x1f), 0
	}
	return msgpackLongHead(b, pos)
}

func msgpackLongHead(b []byte, pos int) (size, inner int) {
	switch b[pos] {
	case msgpcode.Nil, msgpcode.False, msgpcode.True:
		return 1, 0
	case msgpcode.Uint8, msgpcode.Int8:
		return 2, 0
	case msgpcode.Uint16, msgpcode.Int16:
		return 3, 0
	case msgpcode.Uint32, msgpcode.Int32, msgpcode.Float:
		return 5, 0
	case msgpcode.Uint64, msgpcode.Int64, msgpcode.Double:
		return 9, 0
	case msgpcode.Str8, msgpcode.Bin8:
		return 2 + msgpackUint(b, pos+1, 1), 0
	case msgpcode.Str16, msgpcode.Bin16:
		return 3 + msgpackUint(b, pos+1, 2), 0
	case msgpcode.Str32, msgpcode.Bin32:
		return 5 + msgpackUint(b, pos+1, 4), 0
	case msgpcode.FixExt1, msgpcode.FixExt2, msgpcode.FixExt4, msgpcode.FixExt8, msgpcode.FixExt16:
		return 2 + 1<<(b[pos]-msgpcode.FixExt1), 0
	case msgpcode.Ext8:
		return 3 + msgpackUint(b, pos+1, 1), 0
	case msgpcode.Ext16:
		return 4 + msgpackUint(b, pos+1, 2), 0
	case msgpcode.Ext32:
		return 6 + msgpackUint(b, pos+1, 4), 0
	case msgpcode.Array16:
		return 3, msgpackUint(b, pos+1, 2)
	case msgpcode.Array32:
		return 5, msgpackUint(b, pos+1, 4)
	case msgpcode.Map16:
		return 3, 2 * msgpackUint(b, pos+1, 2)
	case msgpcode.Map32:
		return 5, 2 * msgpackUint(b, pos+1, 4)
	}
	return len(b) + 1, 0 // no value begins so
}

// msgpackUint reads an unsigned number of n bytes; what is cut off is larger
// than any input.
func msgpackUint(b []byte, pos, n int) int {
	if n > len(b)-pos {
		return len(b) + 1
	}
	switch n {
	case 1:
		return int(b[pos])
	case 2:
		return int(binary.BigEndian.Uint16(b[pos:]))
	}
	return int(binary.BigEndian.Uint32(b[pos:]))
}

// msgpackSkip returns the position behind the value at pos.
func msgpackSkip(b []byte, pos int) int {
	for left := 1; left > 0; left-- {
		if pos < 0 || pos >= len(b) {
			return -1
		}
		size, inner := msgpackHead(b, pos)
		pos += size
		left += inner
	}
	if pos > len(b) {
		return -1
	}
	return pos
}

// msgpackCount returns how many values a list or, times two, an object has, and
// where they start; -1 for all else.
func msgpackCount(b []byte, pos int, object bool) (count, start int) {
	if pos < 0 || pos >= len(b) {
		return -1, -1
	}
	if form := msgpackForm(b[pos]); object && form != formMap || !object && form != formList {
		return -1, -1
	}
	size, inner := msgpackHead(b, pos)
	return inner, pos + size
}

// msgpackField returns the position of the value of an object's key, -1 if the
// value at pos is no object that has it.
func msgpackField(b []byte, pos int, name string) int {
	count, at := msgpackCount(b, pos, true)
	for ; count > 0; count -= 2 {
		if at < 0 || at >= len(b) {
			return -1
		}
		var same bool
		if c := b[at]; c >= 0xa0 && c < 0xc0 { // a short text, as most keys are
			end := at + 1 + int(c&0x1f)
			if end > len(b) {
				return -1
			}
			same = string(b[at+1:end]) == name
			at = end
		} else {
			start := at
			if at = msgpackSkip(b, at); at < 0 {
				return -1
			}
			same = msgpackKey(b, start) == name
		}
		if same {
			return at
		}
		at = msgpackSkip(b, at)
	}
	return -1
}

// msgpackElement returns the position of the i-th value of a list, -1 if the
// value at pos is no list that has it.
func msgpackElement(b []byte, pos, i int) int {
	count, at := msgpackCount(b, pos, false)
	if i < 0 || i >= count {
		return -1
	}
	for ; i > 0 && at >= 0; i-- {
		at = msgpackSkip(b, at)
	}
	return at
}

// msgpackForm is what a value is, as its first byte says.
func msgpackForm(c byte) form {
	switch {
	case c < 0x80 || c >= 0xe0:
		return formInt
	case c < 0x90:
		return formMap
	case c < 0xa0:
		return formList
	case c < 0xc0:
		return formString
	}
	switch c {
	case msgpcode.Nil:
		return formNull
	case msgpcode.False, msgpcode.True:
		return formBool
	case msgpcode.Uint8, msgpcode.Int8, msgpcode.Uint16, msgpcode.Int16,
		msgpcode.Uint32, msgpcode.Int32, msgpcode.Uint64, msgpcode.Int64:
		return formInt
	case msgpcode.Float, msgpcode.Double:
		return formFloat
	case msgpcode.Str8, msgpcode.Str16, msgpcode.Str32:
		return formString
	case msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32:
		return formBytes
	case msgpcode.Array16, msgpcode.Array32:
		return formList
	case msgpcode.Map16, msgpcode.Map32:
		return formMap
	case msgpcode.FixExt4, msgpcode.FixExt8, msgpcode.Ext8:
		return formTime
	}
	return formMissing
}

// msgpackValue reads the value at pos; lists and objects stay unread.
func msgpackValue(b []byte, pos int) Value {
	if pos < 0 || pos >= len(b) {
		return Value{}
	}
	c := b[pos]
	switch f := msgpackForm(c); f {
	case formMap, formList:
		return Value{form: f}
	}
	size, _ := msgpackHead(b, pos)
	if size > len(b)-pos {
		return Value{}
	}
	v := b[pos : pos+size]
	switch c {
	case msgpcode.Double:
		return FloatValue(math.Float64frombits(binary.BigEndian.Uint64(v[1:])))
	case msgpcode.Float:
		return FloatValue(float64(math.Float32frombits(binary.BigEndian.Uint32(v[1:]))))
	case msgpcode.Nil:
		return nullValue()
	case msgpcode.False, msgpcode.True:
		return BoolValue(c == msgpcode.True)
	}
	switch msgpackForm(c) {
	case formInt:
		return msgpackInt(v)
	case formString:
		return StringValue(view(v[len(v)-msgpackPayload(v):]))
	case formBytes:
		return bytesValue(view(v[len(v)-msgpackPayload(v):]))
	case formTime:
		return msgpackTime(v)
	}
	return Value{}
}

// msgpackPayload is the number of bytes of a text or of bytes, which end v.
func msgpackPayload(v []byte) int {
	switch v[0] {
	case msgpcode.Str8, msgpcode.Bin8:
		return len(v) - 2
	case msgpcode.Str16, msgpcode.Bin16:
		return len(v) - 3
	case msgpcode.Str32, msgpcode.Bin32:
		return len(v) - 5
	}
	return len(v) - 1
}

func msgpackInt(v []byte) Value {
	switch v[0] {
	case msgpcode.Uint8:
		return IntValue(int64(v[1]))
	case msgpcode.Uint16:
		return IntValue(int64(binary.BigEndian.Uint16(v[1:])))
	case msgpcode.Uint32:
		return IntValue(int64(binary.BigEndian.Uint32(v[1:])))
	case msgpcode.Uint64:
		return uintValue(binary.BigEndian.Uint64(v[1:]))
	case msgpcode.Int8:
		return IntValue(int64(int8(v[1])))
	case msgpcode.Int16:
		return IntValue(int64(int16(binary.BigEndian.Uint16(v[1:]))))
	case msgpcode.Int32:
		return IntValue(int64(int32(binary.BigEndian.Uint32(v[1:]))))
	case msgpcode.Int64:
		return IntValue(int64(binary.BigEndian.Uint64(v[1:])))
	}
	return IntValue(int64(int8(v[0])))
}

// msgpackTime reads msgpack's timestamp extension.
func msgpackTime(v []byte) Value {
	const timestamp = 0xff
	switch {
	case v[0] == msgpcode.FixExt4 && v[1] == timestamp:
		return TimeValue(time.Unix(int64(binary.BigEndian.Uint32(v[2:])), 0))
	case v[0] == msgpcode.FixExt8 && v[1] == timestamp:
		n := binary.BigEndian.Uint64(v[2:])
		return TimeValue(time.Unix(int64(n&(1<<34-1)), int64(n>>34)))
	case v[0] == msgpcode.Ext8 && len(v) == 15 && v[2] == timestamp:
		return TimeValue(time.Unix(int64(binary.BigEndian.Uint64(v[7:])), int64(binary.BigEndian.Uint32(v[3:]))))
	}
	return Value{}
}

// msgpackKey gives a key as JSON names it: texts as they are, others by their
// text.
func msgpackKey(b []byte, pos int) string {
	v := msgpackValue(b, pos)
	switch v.form {
	case formString:
		return v.text
	case formBytes:
		return base64.StdEncoding.EncodeToString([]byte(v.text))
	case formTime:
		return v.time().Format(time.RFC3339Nano)
	case formInt:
		return strconv.FormatInt(int64(v.bits), 10)
	case formList, formMap:
		end := msgpackSkip(b, pos)
		if end < 0 {
			return ""
		}
		return string(renderMsgpack(snapshot.Msgpack(), b[pos:end]))
	}
	return v.String()
}
