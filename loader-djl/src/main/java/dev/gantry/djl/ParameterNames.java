// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.names.NamePattern;
import dev.gantry.djl.internal.names.NameRules;
import dev.gantry.formats.TensorTransform;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// Maps the parameters of a block to tensors. DJL names parameters by their position in the block
/// (`01Linear_weight`), and weights files name tensors by layers (`encoder.layer.0.fc.weight`), so
/// you supply the mapping as a list of rules. Immutable, thread-safe.
///
/// A rule's parameter side is a name with captures, its tensor side a template that uses them:
///
/// ```java
/// ParameterNames names =
///     ParameterNames.builder()
///         .rule("embedding_embedding", "embeddings.word_embeddings.weight")
///         .rule("{i}Layer_query_{kind}", "encoder.layer.{i-1}.attention.self.query.{kind}")
///         .ignore("{any*}.position_ids")
///         .build();
/// ```
///
/// A capture of one letter from `i` to `n` stands for a whole number, written with or without leading
/// zeros; the tensor side may shift it, as in `{i-1}`. Any other name stands for text without dots,
/// or, as in `{any*}`, for text with dots.
///
/// A load applies the rules to the block's parameters, as `Block.getParameters()` names them. It
/// refuses, before it reads anything: a parameter that two rules match, a tensor that two parameters
/// claim, a rule that matches no parameter, and, unless `optPartial` allows them, parameters without a
/// tensor and tensors without a parameter.
public final class ParameterNames {
  private final NameRules rules;

  private ParameterNames(NameRules rules) {
    this.rules = rules;
  }

  NameRules rules() {
    return rules;
  }

  /// Returns these names for a block that needs a value for each of its parameters: `optPartial` then allows
  /// tensors without a parameter, but no parameter without a tensor.
  public ParameterNames complete() {
    return new ParameterNames(rules.withComplete());
  }

  /// The tensors have the parameters' own names. Tensors of other names are no error: the report
  /// names them.
  public static ParameterNames same() {
    return new ParameterNames(NameRules.SAME);
  }

  /// Names by a table, from parameter to tensor. Two parameters may have one tensor: they share its memory. Tensors
  /// that the table does not name are no error: the report names them.
  ///
  /// @throws MisuseException if the table is empty
  public static ParameterNames of(Map<String, String> tensorByParameter) {
    MisuseException.requireGiven("tensorByParameter", tensorByParameter);
    if (tensorByParameter.isEmpty()) {
      throw new MisuseException("the table of names is empty; it must name a tensor or more");
    }
    Builder builder = builder();
    tensorByParameter.forEach(builder::literal);
    builder.strict = false;
    return builder.build();
  }

  /// A builder without any rule.
  public static Builder builder() {
    return new Builder();
  }

  /// Makes [ParameterNames]. The order of the rules has no meaning. Not thread-safe.
  public static final class Builder {
    private final List<NameRules.Rule> rules = new ArrayList<>();
    private final List<NameRules.Alias> aliases = new ArrayList<>();
    private final List<NamePattern> ignored = new ArrayList<>();
    private final List<NameRules.Refusal> refused = new ArrayList<>();
    private NameRules.Rest rest = NameRules.Rest.NONE;
    private boolean strict = true;

    private Builder() {}

    private void literal(String parameter, String tensor) {
      rules.add(
          new NameRules.Rule.Tensors(
              NamePattern.literal(parameter), List.of(tensor), 0, List.of(), false));
    }

    /// Adds a rule: a parameter gets this tensor, after these transforms.
    ///
    /// @param parameter a name with captures; it must match one parameter or more
    /// @param tensor a template for the tensor's name
    /// @throws MisuseException if a capture is misspelt, or the template uses one that the parameter
    ///     does not have
    public Builder rule(String parameter, String tensor, TensorTransform... transforms) {
      return add(parameter, 0, List.of(required("tensor of rule", tensor)), false, transforms);
    }

    /// Adds a rule that may match no parameter: for a layer that only some blocks have.
    public Builder optRule(String parameter, String tensor, TensorTransform... transforms) {
      return add(parameter, 0, List.of(required("tensor of optRule", tensor)), true, transforms);
    }

    /// Adds a rule: a parameter gets several tensors, concatenated along an axis.
    ///
    /// @param tensors templates for their names, in order
    /// @param eachOfThem transforms that apply to each tensor before it is concatenated
    /// @throws MisuseException as [#rule], and if there is no tensor or the axis is less than 0
    public Builder concat(
        String parameter, int axis, List<String> tensors, TensorTransform... eachOfThem) {
      return joined(parameter, axis, tensors, false, eachOfThem);
    }

    /// Adds a rule of [#concat] that may match no parameter.
    public Builder optConcat(
        String parameter, int axis, List<String> tensors, TensorTransform... eachOfThem) {
      return joined(parameter, axis, tensors, true, eachOfThem);
    }

    private Builder joined(
        String parameter,
        int axis,
        List<String> tensors,
        boolean optional,
        TensorTransform... eachOfThem) {
      MisuseException.requireRange("axis of concat", axis, 0, Integer.MAX_VALUE);
      MisuseException.requireGiven("tensors of concat", tensors);
      MisuseException.requireRange(
          "number of tensors of concat", tensors.size(), 1, Integer.MAX_VALUE);
      return add(parameter, axis, tensors, optional, eachOfThem);
    }

    private Builder add(
        String parameter,
        int axis,
        List<String> tensors,
        boolean optional,
        TensorTransform... transforms) {
      MisuseException.requireGiven("transforms", transforms);
      for (int i = 0; i < transforms.length - 1; i++) {
        if (transforms[i] instanceof TensorTransform.Pad) {
          throw new MisuseException("pad must be the last transform of '" + parameter + "'");
        }
      }
      rules.add(
          new NameRules.Rule.Tensors(
              pattern("parameter", parameter), tensors, axis, List.of(transforms), optional));
      return this;
    }

    /// Adds a rule: a parameter has the value of another one, as an output layer that shares the embedding's
    /// weights. They share one array if neither has one yet.
    ///
    /// @param other a template for the other parameter's name
    public Builder tie(String parameter, String other) {
      rules.add(new NameRules.Rule.Tie(pattern("parameter", parameter), required("other", other)));
      return this;
    }

    /// Adds a rule: all elements of a parameter have this value; it has no tensor.
    public Builder constant(String parameter, float value) {
      rules.add(new NameRules.Rule.Constant(pattern("parameter", parameter), value));
      return this;
    }

    /// Names tensors that no parameter needs, such as counters; a tensor that a rule uses is loaded all the
    /// same.
    public Builder ignore(String tensors) {
      ignored.add(pattern("tensors", tensors));
      return this;
    }

    /// Names tensors without which the block would be another model than the file's: a load refuses files
    /// that have them unless a rule uses them, also with `optPartial`.
    ///
    /// @param reason for the message, as a sentence without its full stop
    public Builder refuse(String tensors, String reason) {
      refused.add(
          new NameRules.Refusal(pattern("tensors", tensors), required("reason of refuse", reason)));
      return this;
    }

    /// Tensors may have another name, as in older files: one that matches `tensor` counts as `name`,
    /// unless there is a tensor of that name.
    ///
    /// @param name a template
    public Builder alias(String tensor, String name) {
      aliases.add(new NameRules.Alias(pattern("tensor", tensor), required("name", name)));
      return this;
    }

    /// Names of tensors may begin with this, such as `bert.`; the rules have the names without it.
    public Builder optPrefix(String prefix) {
      MisuseException.requireGiven("optPrefix", prefix);
      return alias(prefix + "{rest*}", "{rest}");
    }

    /// Parameters that no rule matches get the tensor of their own name.
    public Builder restBySameName() {
      rest = NameRules.Rest.SAME_NAME;
      return this;
    }

    /// Parameters that no rule matches get the tensors that no rule uses, in order: the first one the
    /// first. A load refuses that if their numbers or a pair's shapes differ.
    public Builder restByOrder() {
      rest = NameRules.Rest.BY_ORDER;
      return this;
    }

    /// Parameters that no rule matches get the tensor of their shape that no rule uses. A load refuses
    /// that if a shape occurs twice.
    public Builder restByShape() {
      rest = NameRules.Rest.BY_SHAPE;
      return this;
    }

    /// Returns names with the rules given so far.
    public ParameterNames build() {
      return new ParameterNames(
          new NameRules(rules, aliases, ignored, refused, rest, strict, false));
    }

    private static NamePattern pattern(String what, String text) {
      return new NamePattern(required(what, text));
    }

    private static String required(String what, String text) {
      return MisuseException.requireGiven(what, text);
    }
  }
}
