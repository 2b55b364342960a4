package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// format is the version of everything in the folder.
const format = 1

// entityHead is an entity's file without its rows.
type entityHead struct {
	Format   int    `json:"format"`
	Pod      string `json:"pod"`
	Name     string `json:"name"`
	Position uint64 `json:"position"`
	entityRecord
	Count int `json:"row_count"`
}

// entityRecord is the record in it; without one its life is 0.
type entityRecord struct {
	Life     uint64          `json:"life,omitempty"`
	Revision uint64          `json:"revision,omitempty"`
	Reserved uint64          `json:"reserved,omitempty"`
	Changed  stamp           `json:"changed,omitzero"`
	Schema   uint32          `json:"schema,omitempty"`
	Codec    string          `json:"codec,omitempty"`
	State    json.RawMessage `json:"state,omitempty"`
	Text     *string         `json:"text,omitempty"`
	Data     []byte          `json:"data,omitempty"`
}

// rowLine is one line of the rows. Sums are checksums: of the line's start, so
// that it is known which row is damaged, and of the line.
type rowLine struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Head string `json:"head"`
	value
	Damaged bool   `json:"damaged,omitempty"`
	Sum     string `json:"sum"`
}

const (
	headSum   = ",\n  \"record_checksum\": \"" // of everything before it
	rowsStart = "\",\n  \"rows\": ["
	rowsEnd   = "\n  ]"
	rowHead   = `,"head":"`
	lineSum   = `,"sum":"`
)

// encode writes an entity's file:
//
//	{
//	  "format": 1, "pod": …, "name": …, "position": …,
//	  "life": …, "revision": …, "reserved": …, "changed": …, "schema": …, "codec": …,
//	  "state": …,
//	  "row_count": 1,
//	  "record_checksum": "0123abcd",
//	  "rows": [
//	    {"kind":"outbox","id":"1","head":"0123abcd","value":…,"sum":"0123abcd"}
//	  ],
//	  "checksum": "crc32c 0123abcd"
//	}
//
// with a line for each member and row. In place of "state" stands "text" where
// the state is no JSON, or "data" in base64, which for msgpack has "state"
// beside it for the reader's eye.
func encode(c *content) ([]byte, error) {
	head := entityHead{Format: format, Pod: c.key.Pod, Name: c.key.Name, Position: c.position, Count: len(c.rows)}
	if r := c.record; r != nil {
		v := valueOf(r.State, r.Codec).shown(r.Codec)
		head.entityRecord = entityRecord{r.Life, r.Revision, r.Reserved, stampOf(r.Changed), r.Schema, r.Codec, v.Value, v.Text, v.Data}
	}
	b, err := marshal(head)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(out.Bytes(), []byte("\n}"))
	text = fmt.Appendf(text, "%s%08x%s", headSum, checksum(text), rowsStart)
	for i, id := range c.sorted() {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, "\n    "...)
		if text, err = appendRow(text, id, c.rows[id]); err != nil {
			return nil, err
		}
	}
	return seal(append(text, rowsEnd...)), nil
}

func appendRow(text []byte, id rowID, r row) ([]byte, error) {
	start := len(text)
	head, err := marshal(rowLine{Kind: id.kind, ID: id.id})
	if err != nil {
		return nil, err
	}
	named, _, _ := bytes.Cut(head, []byte(rowHead))
	text = append(text, named...)
	text = fmt.Appendf(text, `%s%08x"`, rowHead, checksum(text[start:]))
	body := []byte(`{"damaged":true}`)
	if !r.damaged {
		if body, err = marshal(valueOf(r.value, "")); err != nil {
			return nil, err
		}
	}
	if inner := body[1 : len(body)-1]; len(inner) > 0 {
		text = append(append(text, ','), inner...)
	}
	return fmt.Appendf(text, `%s%08x"}`, lineSum, checksum(text[start:])), nil
}

// decode reads an entity's file, whose key is known from where it lies. Where
// only rows are damaged these say so; all else that is damaged is an error that
// wraps snapshot.ErrCorrupt. A file that somebody edited on purpose is returned
// with errEdited.
func decode(key persist.Key, b []byte) (*content, error) {
	object, err := unseal(b)
	if err != nil && !errors.Is(err, errEdited) {
		return salvage(key, b)
	}
	var whole struct {
		entityHead
		HeadSum string    `json:"record_checksum"`
		Rows    []rowLine `json:"rows"`
	}
	if newer := newerFormat(object); newer != nil {
		return nil, newer
	}
	if bad := strict(object, &whole); bad != nil {
		return nil, damaged("%v", bad)
	}
	c, bad := whole.content(key)
	if bad != nil {
		return nil, bad
	}
	for i := range whole.Rows {
		if bad := c.addRow(&whole.Rows[i]); bad != nil {
			return nil, bad
		}
	}
	return c, err
}

// salvage reads a file whose checksum is wrong: when the record's is right and
// it is known of each row which it is, damage is the single rows' matter.
func salvage(key persist.Key, b []byte) (*content, error) {
	hint := damaged("%v", errSeal)
	if json.Valid(b) {
		hint = damaged("%v; where it was edited and that is wanted, put \"%s\" in the place of the last checksum and open the store again", errSeal, edited)
	}
	i := bytes.Index(b, []byte(headSum))
	if i < 0 || len(b) < i+len(headSum)+8+len(rowsStart) {
		return nil, hint
	}
	text, rest := b[:i], b[i+len(headSum):]
	if string(rest[:8]) != fmt.Sprintf("%08x", checksum(text)) || string(rest[8:8+len(rowsStart)]) != rowsStart {
		return nil, hint
	}
	object := append(bytes.Clone(text), '}')
	if newer := newerFormat(object); newer != nil {
		return nil, newer
	}
	var head entityHead
	if err := strict(object, &head); err != nil {
		return nil, hint
	}
	c, err := head.content(key)
	if err != nil {
		return nil, err
	}
	rest = rest[8+len(rowsStart):]
	end := bytes.LastIndex(rest, []byte(rowsEnd))
	if end < 0 {
		return nil, hint
	}
	for line := range bytes.SplitSeq(bytes.TrimPrefix(rest[:end], []byte("\n")), []byte("\n")) {
		if len(line) > 0 && !c.salvageRow(bytes.TrimSpace(bytes.TrimSuffix(line, []byte(",")))) {
			return nil, hint
		}
	}
	if len(c.rows) != head.Count {
		return nil, hint
	}
	return c, nil
}

func (c *content) salvageRow(line []byte) bool {
	i := bytes.Index(line, []byte(rowHead))
	if i < 0 || len(line) < i+len(rowHead)+8 || string(line[i+len(rowHead):][:8]) != fmt.Sprintf("%08x", checksum(line[:i])) {
		return false
	}
	var l rowLine
	if strict(append(bytes.Clone(line[:i]), '}'), &l) != nil {
		return false
	}
	id := rowID{l.Kind, l.ID}
	j := bytes.LastIndex(line, []byte(lineSum))
	if j < 0 || string(line[j:]) != fmt.Sprintf(`%s%08x"}`, lineSum, checksum(line[:j])) || strict(line, &l) != nil || c.addRow(&l) != nil {
		c.setRow(id, row{damaged: true})
	}
	return true
}

// misplaced says that a file is another entity's, and whole.
type misplaced struct{ key persist.Key }

func (m misplaced) Error() string {
	return fmt.Sprintf("it says that it is %s: it was copied or renamed: %v", m.key, snapshot.ErrCorrupt)
}

func (m misplaced) Unwrap() error { return snapshot.ErrCorrupt }

func (h *entityHead) content(key persist.Key) (*content, error) {
	if h.Pod != key.Pod || h.Name != key.Name {
		return nil, misplaced{persist.Key{Pod: h.Pod, Name: h.Name}}
	}
	c := newContent(key)
	c.position = h.Position
	r := &h.entityRecord
	if r.Life == 0 && r.Revision == 0 {
		return c, nil
	}
	state, err := value{r.State, r.Text, r.Data}.bytes()
	if err != nil || r.Life == 0 || r.Revision == 0 {
		return nil, damaged("it has life %d, revision %d: %v", r.Life, r.Revision, err)
	}
	if r.Data != nil && r.State != nil {
		shown, _ := value{Value: r.State}.bytes()
		if !bytes.Equal(shown, value{Data: r.Data}.shown(r.Codec).Value) {
			return nil, damaged("\"state\" only shows what \"data\" means and cannot be edited")
		}
	}
	c.setRecord(&snapshot.Record{Life: r.Life, Revision: r.Revision, Reserved: r.Reserved, Changed: time.Time(r.Changed),
		Schema: r.Schema, Codec: r.Codec, State: slices.Clip(state)})
	return c, nil
}

func (c *content) addRow(l *rowLine) error {
	v, err := l.bytes()
	if err != nil {
		return damaged("row %s %q: %v", l.Kind, l.ID, err)
	}
	op := persist.RowOp{Kind: l.Kind, ID: l.ID}
	if err := checkRow(&op); err != nil {
		return damaged("row %s %q: %v", l.Kind, l.ID, err)
	}
	c.setRow(rowID{l.Kind, l.ID}, row{value: v, damaged: l.Damaged})
	return nil
}

// checkRow says what is wrong with a row's kind or ID.
func checkRow(op *persist.RowOp) error {
	u := persist.Unit{Key: persist.Key{Pod: "p", Name: "n"}, Expect: 1, Rows: []persist.RowOp{*op}}
	return u.Check(len(op.Value))
}

// newerFormat says that an object of some file is of a version that this
// program does not know.
func newerFormat(object []byte) error {
	var v struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(object, &v); err == nil && v.Format > format {
		return fmt.Errorf("it has format %d and this program reads up to %d: %w", v.Format, format, snapshot.ErrNewer)
	}
	return nil
}

func damaged(text string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(text, args...), snapshot.ErrCorrupt)
}
