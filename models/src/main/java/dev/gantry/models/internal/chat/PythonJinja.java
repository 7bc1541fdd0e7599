// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.chat;

import com.hubspot.jinjava.Jinjava;
import com.hubspot.jinjava.JinjavaConfig;
import com.hubspot.jinjava.el.ExtendedSyntaxBuilder;
import com.hubspot.jinjava.el.TruthyTypeConverter;
import com.hubspot.jinjava.el.ext.ExtendedParser;
import com.hubspot.jinjava.interpret.Context;
import com.hubspot.jinjava.interpret.InterpreterFactory;
import com.hubspot.jinjava.interpret.JinjavaInterpreter;
import com.hubspot.jinjava.lib.filter.AdvancedFilter;
import com.hubspot.jinjava.lib.filter.DefaultFilter;
import com.hubspot.jinjava.lib.filter.TrimFilter;
import dev.gantry.core.MisuseException;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Pattern;
import jinjava.de.odysseus.el.ExpressionFactoryImpl;
import jinjava.de.odysseus.el.tree.Bindings;
import jinjava.de.odysseus.el.tree.TreeBuilder;
import jinjava.de.odysseus.el.tree.impl.Parser;
import jinjava.de.odysseus.el.tree.impl.ast.AstBinary;
import jinjava.de.odysseus.el.tree.impl.ast.AstNode;
import jinjava.javax.el.ELContext;
import jinjava.javax.el.ExpressionFactory;
import org.jspecify.annotations.Nullable;

/// Jinjava with Python's rules for texts. Every text that is not empty is true; to Jinjava, the text
/// `false` is not, so that templates would leave out a message of this text. The filter `trim` removes
/// the blanks of all languages, as in Python. `a and b` is one of the two values, and values become
/// text and JSON as in Python.
final class PythonJinja extends Jinjava {
  private static final Pattern CONDITION =
      Pattern.compile("(\\{%[-+]?\\s*(?:el)?if\\b)(.*?)([-+]?%})", Pattern.DOTALL);

  private final ExpressionFactory expressions;

  PythonJinja(JinjavaConfig config) {
    super(config);
    Properties syntax = new Properties();
    syntax.setProperty(TreeBuilder.class.getName(), Syntax.class.getName());
    expressions = new ExpressionFactoryImpl(syntax, new Truth());
    registerFilter(new Trim());
    registerFilter(new Default());
    registerFilter(new ToJson());
  }

  @Override
  public ExpressionFactory getExpressionFactory() {
    return expressions;
  }

  /// Makes each condition of a template a boolean. Jinjava's tags have a rule of their own for what
  /// is true, and only operators ask [Truth].
  static String decided(String template) {
    return CONDITION.matcher(template).replaceAll("$1 not (not ($2))$3");
  }

  private static boolean isText(@Nullable Object value) {
    return value instanceof String text && !text.isEmpty();
  }

  private static final class Truth extends TruthyTypeConverter {
    private static final long serialVersionUID = 1L;

    @Override
    protected Boolean coerceToBoolean(@Nullable Object value) {
      return isText(value) || super.coerceToBoolean(value);
    }

    @Override
    protected String coerceToString(@Nullable Object value) {
      return PythonText.isOwn(value) ? PythonText.repr(value) : super.coerceToString(value);
    }
  }

  /// Writes the values of expressions.
  static final class Interpreter extends JinjavaInterpreter {
    private Interpreter(Jinjava jinja, Context context, JinjavaConfig config) {
      super(jinja, context, config);
    }

    private Interpreter(JinjavaInterpreter other) {
      super(other);
    }

    @Override
    public String getAsString(@Nullable Object value) {
      return PythonText.isOwn(value) ? PythonText.repr(value) : super.getAsString(value);
    }
  }

  /// Makes the interpreters of templates and of their blocks.
  static final class Interpreters implements InterpreterFactory {
    @Override
    public JinjavaInterpreter newInstance(JinjavaInterpreter other) {
      return new Interpreter(other);
    }

    @Override
    public JinjavaInterpreter newInstance(Jinjava jinja, Context context, JinjavaConfig config) {
      return new Interpreter(jinja, context, config);
    }
  }

  /// Jinjava's syntax with Python's `and`; Jinjava's own gives a boolean. Jinjava calls the
  /// constructors.
  public static final class Syntax extends ExtendedSyntaxBuilder {
    private static final long serialVersionUID = 1L;

    public Syntax() {}

    public Syntax(Feature... features) {
      super(features);
    }

    @Override
    protected Parser createParser(String expression) {
      return new ExtendedParser(this, expression) {
        @Override
        protected AstBinary createAstBinary(
            AstNode left, AstNode right, AstBinary.Operator operator) {
          return super.createAstBinary(
              left, right, operator.equals(AstBinary.AND) ? Syntax::and : operator);
        }
      };
    }

    private static @Nullable Object and(
        Bindings bindings, ELContext context, AstNode left, AstNode right) {
      @Nullable Object first = left.eval(bindings, context);
      return bindings.convert(first, Boolean.class) ? right.eval(bindings, context) : first;
    }
  }

  private static final class Trim extends TrimFilter {
    @Override
    public @Nullable Object filter(
        @Nullable Object value, JinjavaInterpreter interpreter, String... arguments) {
      return value instanceof String text
          ? PythonMethods.stripped(text, null, true, true)
          : super.filter(value, interpreter, arguments);
    }
  }

  private static final class Default extends DefaultFilter {
    @Override
    public @Nullable Object filter(
        @Nullable Object value,
        JinjavaInterpreter interpreter,
        Object[] arguments,
        Map<String, Object> named) {
      return isText(value) ? value : super.filter(value, interpreter, arguments, named);
    }
  }

  private static final class ToJson implements AdvancedFilter {
    @Override
    public String getName() {
      return "tojson";
    }

    @Override
    public Object filter(
        @Nullable Object value,
        JinjavaInterpreter interpreter,
        Object[] arguments,
        Map<String, Object> named) {
      for (String name : named.keySet()) {
        if (!name.equals("indent") && !name.equals("ensure_ascii")) {
          throw new MisuseException("the chat template's filter tojson takes no " + name + " here");
        }
      }
      return PythonText.json(
          value, named.get("indent") instanceof Number indent ? indent.longValue() : -1);
    }
  }
}
