package filter

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrTooCostly says that an expression needs more work for one entity than
// MaxCost.
var ErrTooCostly = errors.New("filter costs too much")

// SyntaxError says what is wrong with a text and where.
type SyntaxError struct {
	// Line and Column are those of the first problem, both from 1, in
	// characters.
	Line, Column int
	// Message says what is wrong there.
	Message string
	// More are the problems behind the first one, at most nine.
	More []SyntaxError
}

func (e *SyntaxError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "line %d, column %d: %s", e.Line, e.Column, e.Message)
	for i := range e.More {
		b.WriteString("; ")
		b.WriteString(e.More[i].Error())
	}
	return b.String()
}

// errorAt is a syntax error at a byte of a text of one line.
func errorAt(text string, offset int, format string, args ...any) *SyntaxError {
	offset = min(offset, len(text))
	return &SyntaxError{Line: 1, Column: 1 + utf8.RuneCountInString(text[:offset]), Message: fmt.Sprintf(format, args...)}
}
