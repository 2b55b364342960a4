package filter

// verdict is an answer of CEL's three-valued logic: an expression that meets a
// missing key or a wrong type has none, unless && or || do not need it.
type verdict uint8

const (
	no verdict = iota
	yes
	none
)

func verdictOf(b bool) verdict {
	if b {
		return yes
	}
	return no
}

// node is a part of an expression that says yes or no. Nodes are immutable.
type node interface {
	judge(s *Subject) verdict
}

type andNode []node

func (n andNode) judge(s *Subject) verdict {
	out := yes
	for _, inner := range n {
		switch inner.judge(s) {
		case no:
			return no
		case none:
			if s.failed != nil {
				return none
			}
			out = none
		}
	}
	return out
}

type orNode []node

func (n orNode) judge(s *Subject) verdict {
	out := no
	for _, inner := range n {
		switch inner.judge(s) {
		case yes:
			return yes
		case none:
			if s.failed != nil {
				return none
			}
			out = none
		}
	}
	return out
}

type notNode struct{ inner node }

func (n notNode) judge(s *Subject) verdict {
	switch n.inner.judge(s) {
	case yes:
		return no
	case no:
		return yes
	}
	return none
}

type constNode verdict

func (n constNode) judge(*Subject) verdict { return verdict(n) }
