package filter

// tree decodes the value at pos for cel-go: nil, bool, int64, uint64 above it,
// float64, string, []byte, time.Time, []any and map[string]any. ok is false for
// what cannot be read.
func (r *raw) tree(pos, depth int) (any, bool) {
	v := r.value(pos)
	switch v.form {
	case formMissing:
		return nil, false
	case formList:
		return r.list(pos, depth)
	case formMap:
		return r.object(pos, depth)
	}
	return v.native(), true
}

// native gives the value as cel-go takes it.
func (v Value) native() any {
	switch v.form {
	case formBool:
		return v.bits != 0
	case formInt:
		return int64(v.bits)
	case formUint:
		return v.bits
	case formFloat:
		f, _ := v.Float()
		return f
	case formString:
		return v.text
	case formBytes:
		return []byte(v.text)
	case formTime:
		return v.time()
	}
	return nil
}

const maxDepth = 1000 // of a state, as snapshot has it

func (r *raw) list(pos, depth int) (any, bool) {
	out := []any{}
	if depth >= maxDepth {
		return nil, false
	}
	for at := range r.elements(pos) {
		inner, ok := r.tree(at, depth+1)
		if !ok {
			return nil, false
		}
		out = append(out, inner)
	}
	return out, true
}

func (r *raw) object(pos, depth int) (any, bool) {
	out := map[string]any{}
	if depth >= maxDepth {
		return nil, false
	}
	for key, at := range r.members(pos) {
		inner, ok := r.tree(at, depth+1)
		if !ok {
			return nil, false
		}
		out[key] = inner
	}
	return out, true
}

// elements yields the positions of a list's values.
func (r *raw) elements(pos int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		if r.encoding == encodingJSON {
			for at := jsonFirst(r.data, pos); at >= 0 && yield(at); {
				at = jsonNext(r.data, at)
			}
			return
		}
		count, at := msgpackCount(r.data, pos, false)
		for ; count > 0 && at >= 0 && yield(at); count-- {
			at = msgpackSkip(r.data, at)
		}
	}
}

// members yields an object's keys and the positions of their values.
func (r *raw) members(pos int) func(yield func(string, int) bool) {
	if r.encoding == encodingJSON {
		return func(yield func(string, int) bool) { jsonMembers(r.data, pos, yield) }
	}
	return func(yield func(string, int) bool) { msgpackMembers(r.data, pos, yield) }
}

func jsonMembers(b []byte, pos int, yield func(string, int) bool) {
	if pos < 0 || pos >= len(b) || b[pos] != '{' {
		return
	}
	for at := pos + 1; at < len(b) && b[at] == '"'; {
		colon := jsonSkipText(b, at)
		if colon < 0 || colon >= len(b) || b[colon] != ':' || !yield(jsonText(b[at:colon]).text, colon+1) {
			return
		}
		if at = jsonSkip(b, colon+1); at < 0 || at >= len(b) || b[at] != ',' {
			return
		}
		at++
	}
}

func msgpackMembers(b []byte, pos int, yield func(string, int) bool) {
	count, at := msgpackCount(b, pos, true)
	for ; count > 0; count -= 2 {
		value := msgpackSkip(b, at)
		if value < 0 || !yield(msgpackKey(b, at), value) {
			return
		}
		at = msgpackSkip(b, value)
	}
}
