// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.chat;

import com.hubspot.jinjava.Jinjava;
import com.hubspot.jinjava.JinjavaConfig;
import com.hubspot.jinjava.el.ExtendedSyntaxBuilder;
import com.hubspot.jinjava.el.TruthyTypeConverter;
import com.hubspot.jinjava.interpret.JinjavaInterpreter;
import com.hubspot.jinjava.lib.filter.DefaultFilter;
import com.hubspot.jinjava.lib.filter.TrimFilter;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Pattern;
import jinjava.de.odysseus.el.ExpressionFactoryImpl;
import jinjava.de.odysseus.el.tree.TreeBuilder;
import jinjava.javax.el.ExpressionFactory;
import org.jspecify.annotations.Nullable;

/// Jinjava with Python's rules for texts. Every text that is not empty is true; to Jinjava, the text
/// `false` is not, so that templates would leave out a message of this text. The filter `trim` removes
/// the blanks of all languages, as in Python.
final class PythonJinja extends Jinjava {
  private static final Pattern CONDITION =
      Pattern.compile("(\\{%[-+]?\\s*(?:el)?if\\b)(.*?)([-+]?%})", Pattern.DOTALL);

  private final ExpressionFactory expressions;

  PythonJinja(JinjavaConfig config) {
    super(config);
    Properties syntax = new Properties();
    syntax.setProperty(TreeBuilder.class.getName(), ExtendedSyntaxBuilder.class.getName());
    expressions = new ExpressionFactoryImpl(syntax, new Truth());
    registerFilter(new Trim());
    registerFilter(new Default());
  }

  @Override
  public ExpressionFactory getExpressionFactory() {
    return expressions;
  }

  /// Makes each condition of a template a boolean. Jinjava's tags have a rule of their own for what
  /// is true, and only operators ask [Truth].
  static String decided(String template) {
    return CONDITION.matcher(template).replaceAll("$1 true and ($2)$3");
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
}
