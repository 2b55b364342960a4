package filter

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
)

// compiler makes nodes of one checked expression: of the common forms nodes of
// its own, which read the state where it stands, and of all else a celNode.
type compiler struct {
	env  *cel.Env
	tree *ast.AST
	keys keys
	left bool  // something is left to cel-go
	err  error // why a part that was left to it cannot be planned

	patterns    map[string]*pattern
	patternCost int // of all of them

	paths []Path // of own nodes, once each
	whole bool   // an own node looks at more than values
}

func newEnv() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("pod", cel.StringType),
		cel.Variable("name", cel.StringType),
		cel.Variable("life", cel.IntType),
		cel.Variable("revision", cel.IntType),
		cel.Variable("changed", cel.TimestampType),
		cel.Variable("state", cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserRecursionLimit(MaxNesting),
		cel.ParserExpressionSizeLimit(MaxText),
		cel.ASTValidators(cel.ValidateTimestampLiterals(), cel.ValidateDurationLiterals()),
		ext.Strings(ext.StringsValidateFormatCalls(false)),
	)
}

// unbounded are functions whose results can be larger than what went in by any
// factor.
func unbounded(function string) bool {
	switch function {
	case "replace", "join", "format", "strings.quote":
		return true
	}
	return false
}

func newCompiler(text string) (*compiler, error) {
	if len(text) > MaxText {
		return nil, errorAt(text, 0, "expression has %d bytes: at most %d are allowed", len(text), MaxText)
	}
	if !utf8.ValidString(text) {
		return nil, errorAt("", 0, "expression is not valid UTF-8")
	}
	env, err := newEnv()
	if err != nil {
		return nil, fmt.Errorf("prepare the filter's environment: %w", err)
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil, syntaxError(issues)
	}
	c := &compiler{env: env, tree: parsed.NativeRep(), patterns: map[string]*pattern{}}
	if err := c.checkLists(); err != nil {
		return nil, err
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, syntaxError(issues)
	}
	c.tree = checked.NativeRep()
	if t := checked.OutputType(); !t.IsExactType(types.BoolType) && !t.IsExactType(types.DynType) {
		return nil, c.errorAt(c.tree.Expr(), "expression gives %s: a filter gives true or false", cel.FormatCELType(t))
	}
	if e := c.tree.Expr(); e.Kind() == ast.CallKind && arithmetic(e.AsCall().FunctionName()) {
		return nil, c.errorAt(e, "expression gives no bool: a filter gives true or false")
	}
	return c, c.checkFunctions()
}

// arithmetic says whether an operator gives a bool for no operands at all, which
// cel-go does not tell of those whose types only a state knows.
func arithmetic(operator string) bool {
	switch operator {
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate:
		return true
	}
	return false
}

// syntaxError makes one error of cel-go's.
func syntaxError(issues *cel.Issues) *SyntaxError {
	const most = 10
	var all []SyntaxError
	for _, e := range issues.Errors() {
		all = append(all, SyntaxError{Line: max(e.Location.Line(), 1), Column: max(e.Location.Column(), 0) + 1, Message: worded(e.Message)})
	}
	if len(all) == 0 {
		return &SyntaxError{Line: 1, Column: 1, Message: issues.Err().Error()}
	}
	first := all[0]
	first.More = slices.Clone(all[1:min(len(all), most)])
	return &first
}

// expected is what a parser says that it would have taken: most of the language.
var expected = regexp.MustCompile(` expecting (\{.*\}|<EOF>)$`)

// worded is a message of cel-go's for who wrote the expression, in common words.
func worded(message string) string {
	message, _, _ = strings.Cut(strings.TrimPrefix(message, "Syntax error: "), "\n")
	return strings.NewReplacer(
		"mismatched input '<EOF>'", "something is missing at the end",
		"mismatched input", "unexpected", "extraneous input", "unexpected", "no viable alternative at input", "unexpected",
		"token recognition error at:", "not understood:", "at '<EOF>'", "at the end", " (in container '')", "",
	).Replace(expected.ReplaceAllLiteralString(message, ""))
}

func (c *compiler) errorAt(e ast.Expr, format string, args ...any) *SyntaxError {
	at := c.tree.SourceInfo().GetStartLocation(e.ID())
	return &SyntaxError{Line: max(at.Line(), 1), Column: max(at.Column(), 0) + 1, Message: fmt.Sprintf(format, args...)}
}

// checkLists refuses too many lists and objects. What is in one of nothing, or in what is
// made of others, is a type that cel-go's checker has to find out, and it copies all that
// it knows of such types for each call that it looks at: of an expression of MaxText
// bytes that took it ten seconds.
func (c *compiler) checkLists() error {
	n := 0
	var last ast.Expr
	ast.PostOrderVisit(c.tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ListKind || e.Kind() == ast.MapKind {
			if n++; n == MaxLists+1 {
				last = e
			}
		}
	}))
	if last != nil {
		return c.errorAt(last, "expression has more than %d lists and objects, of which each map and filter makes some", MaxLists)
	}
	return nil
}

func (c *compiler) checkFunctions() error {
	var found *SyntaxError
	ast.PostOrderVisit(c.tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || found != nil {
			return
		}
		call := e.AsCall()
		switch {
		case unbounded(call.FunctionName()):
			found = c.errorAt(e, "function %s is not allowed in filters: nothing bounds its result", call.FunctionName())
		case call.FunctionName() == matches && len(call.Args()) > 0:
			arg := call.Args()[len(call.Args())-1]
			if text, ok := literalText(arg); ok {
				if _, err := c.pattern(text); err != nil {
					found = c.errorAt(arg, "invalid matches argument: %s", err.Error())
				}
			}
		}
	}))
	if found != nil {
		return found
	}
	return nil
}

func (c *compiler) compile() (node, error) {
	// All of it is planned once, so that what cel-go finds wrong with any part
	// is an error here whoever evaluates that part.
	if _, err := c.plan(c.tree.Expr()); err != nil {
		return nil, &SyntaxError{Line: 1, Column: 1, Message: err.Error()}
	}
	root := c.node(c.tree.Expr())
	return root, c.err
}

// plan makes a program of a part of the expression.
func (c *compiler) plan(e ast.Expr) (cel.Program, error) {
	// Nothing else is optimized: cel-go's test for membership in constants would
	// find false where there is no answer.
	options := []cel.ProgramOption{cel.CustomDecoratorV2(c.decorate)}
	if demanding(e) {
		options = append(options, cel.CustomDecoratorV2(newTolls(e).decorate))
	}
	part := ast.NewCheckedAST(ast.NewAST(e, c.tree.SourceInfo()), c.tree.TypeMap(), c.tree.ReferenceMap())
	return c.env.PlanProgram(part, options...)
}

// decorate is an interpreter.InterpretableDecoratorV2. It puts calls that have a bound
// for what they do in the place of cel-go's.
func (c *compiler) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	switch n := len(call.Args()); {
	case call.Function() == matches && n == 2:
		return c.newMatchesCall(call)
	case (call.Function() == indexOf || call.Function() == lastIndexOf) && (n == 2 || n == 3):
		return &searchCall{call}, nil
	}
	return i, nil
}

// demanding says whether an expression has loops, or calls what takes longer for
// longer texts, lists and objects.
func demanding(e ast.Expr) (yes bool) {
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		yes = yes || e.Kind() == ast.ComprehensionKind || e.Kind() == ast.CallKind && !steady(e.AsCall().FunctionName())
	}))
	return yes
}

// steady says whether a call costs the same whatever its arguments are, or is
// cheaper than reading them was.
func steady(function string) bool {
	switch function {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.NotStrictlyFalse,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate, operators.Index,
		"size", "int", "uint", "double", "bool", "timestamp", "duration", "type", "dyn":
		return true
	}
	return strings.HasPrefix(function, "get") // the parts of times
}

// rest leaves an expression to cel-go.
func (c *compiler) rest(e ast.Expr) node {
	c.look(e)
	c.left = true
	program, err := c.plan(e)
	if err != nil && c.err == nil {
		c.err = c.errorAt(e, "%s", err.Error())
	}
	return &celNode{program: program, keys: &c.keys}
}

// look notes which members of the state an expression for cel-go looks at.
func (c *compiler) look(e ast.Expr) {
	members := map[int64]string{} // of the state itself, by the ID of the operand
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case e.Kind() == ast.SelectKind:
			members[e.AsSelect().Operand().ID()] = e.AsSelect().FieldName()
		case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index && len(e.AsCall().Args()) == 2:
			args := e.AsCall().Args()
			if key, ok := literalText(args[1]); ok {
				members[args[0].ID()] = key
			}
		case e.Kind() == ast.IdentKind && e.AsIdent() == rootNames()[rootState]:
			name, ok := members[e.ID()]
			switch {
			case !ok:
				c.keys.all = true
			case !slices.ContainsFunc(c.keys.names, func(s step) bool { return s.name == name }):
				c.keys.names = append(c.keys.names, keyStep(name))
			}
		}
	}))
}

func literalText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}
