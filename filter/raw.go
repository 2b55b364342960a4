package filter

import (
	"unsafe"

	"github.com/twinsrv/twinsrv/snapshot"
)

// encoding is how a state is written.
type encoding uint8

const (
	encodingUnknown encoding = iota // every path is missing
	encodingMsgpack
	encodingJSON
)

func encodingOf(codec string) encoding {
	switch codec {
	case "msgpack":
		return encodingMsgpack
	case "json":
		return encodingJSON
	}
	return encodingUnknown
}

// step is one step into a state: a key, or an index if the key is not set.
type step struct {
	name   string
	quoted string // the name as canonical JSON has it; empty for an index
	index  int
}

func keyStep(name string) step { return step{name: name, quoted: string(appendText(nil, name))} }

// raw is an encoded state, and reads what stands in it.
type raw struct {
	data     []byte
	encoding encoding
	msgpack  snapshot.Codec // renders msgpack; made when it is first needed
}

// find returns the position of the value at which the steps from pos end, -1 if
// there is none.
func (r *raw) find(pos int, steps []step) int {
	for i := range steps {
		s := &steps[i]
		switch {
		case pos < 0:
			return -1
		case r.encoding == encodingMsgpack && s.quoted != "":
			pos = msgpackField(r.data, pos, s.name)
		case r.encoding == encodingMsgpack:
			pos = msgpackElement(r.data, pos, s.index)
		case r.encoding == encodingJSON && s.quoted != "":
			pos = jsonField(r.data, pos, s.quoted)
		case r.encoding == encodingJSON:
			pos = jsonElement(r.data, pos, s.index)
		default:
			return -1
		}
	}
	return pos
}

// value reads the value at pos. Lists and objects are named and left unread.
func (r *raw) value(pos int) Value {
	switch r.encoding {
	case encodingMsgpack:
		return msgpackValue(r.data, pos)
	case encodingJSON:
		return jsonValue(r.data, pos)
	}
	return Value{}
}

// bytes returns the encoded value at pos, nil if it is no value.
func (r *raw) bytes(pos int) []byte {
	end := -1
	switch r.encoding {
	case encodingMsgpack:
		end = msgpackSkip(r.data, pos)
	case encodingJSON:
		end = jsonSkip(r.data, pos)
	}
	if end < 0 {
		return nil
	}
	return r.data[pos:end]
}

// json renders the value at pos, nil if it is no value. It may share memory
// with the state.
func (r *raw) json(pos int) []byte {
	b := r.bytes(pos)
	if b == nil || r.encoding != encodingMsgpack {
		return b
	}
	if r.msgpack == nil {
		r.msgpack = snapshot.Msgpack()
	}
	return renderMsgpack(r.msgpack, b)
}

// contains says whether a list has an element that equals v, or an object the
// key v; ok is false for what is neither.
func (r *raw) contains(pos int, v Value, key step) (found, ok bool) {
	switch r.value(pos).form {
	case formMap:
		return key.quoted != "" && r.find(pos, []step{key}) >= 0, true
	case formList:
	default:
		return false, false
	}
	if r.encoding == encodingJSON {
		for at := jsonFirst(r.data, pos); at >= 0; at = jsonNext(r.data, at) {
			if equal(jsonValue(r.data, at), v) {
				return true, true
			}
		}
		return false, true
	}
	count, at := msgpackCount(r.data, pos, false)
	for ; count > 0 && at >= 0; count-- {
		if equal(msgpackValue(r.data, at), v) {
			return true, true
		}
		at = msgpackSkip(r.data, at)
	}
	return false, true
}

// view returns the bytes of a state, which nobody changes, as a text.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// renderMsgpack renders one value as JSON; nil if it has none.
func renderMsgpack(codec snapshot.Codec, b []byte) []byte {
	out, err := codec.ToJSON(b)
	if err != nil {
		return nil
	}
	return out
}
