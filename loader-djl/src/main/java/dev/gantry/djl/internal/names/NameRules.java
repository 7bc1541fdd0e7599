// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.names;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.TensorTransform;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The rules that say which tensors each parameter is loaded from. Immutable.
///
/// @param rules the rules for parameters; at most one may match a parameter
/// @param aliases other names that tensors may have in the files
/// @param ignored patterns of tensors that no parameter needs
/// @param refused tensors that must not be left unused
/// @param rest how parameters that no rule matches get their tensors
/// @param strict whether every tensor must be used exactly once: two parameters may share a tensor
///     only if a [Rule.Tie] says so, and a tensor may be left unused only if it is ignored
/// @param complete whether every parameter must get a value, even if only a part of the tensors is
///     loaded
public record NameRules(
    List<Rule> rules,
    List<Alias> aliases,
    List<NamePattern> ignored,
    List<Refusal> refused,
    Rest rest,
    boolean strict,
    boolean complete) {
  public NameRules {
    rules = List.copyOf(rules);
    aliases = List.copyOf(aliases);
    ignored = List.copyOf(ignored);
    refused = List.copyOf(refused);
  }

  /// Says what the parameters that a pattern matches are made of.
  public sealed interface Rule {
    NamePattern parameter();

    /// Whether the rule may match no parameter.
    default boolean optional() {
      return false;
    }

    /// The parameter is the concatenation of these tensors along an axis, each of them transformed
    /// before. Usually there is only one tensor.
    ///
    /// @param tensors templates for the tensors' names
    /// @param transforms the transforms of each tensor
    record Tensors(
        NamePattern parameter,
        List<String> tensors,
        int axis,
        List<TensorTransform> transforms,
        boolean optional)
        implements Rule {
      public Tensors {
        tensors = List.copyOf(tensors);
        transforms = List.copyOf(transforms);
        tensors.forEach(parameter::requireFills);
      }

      @Override
      public String toString() {
        String made =
            tensors.size() == 1 ? "'" + tensors.getFirst() + "'" : "concatenation of " + tensors;
        return "'" + parameter + "' -> " + made;
      }
    }

    /// The parameter has the value of another parameter, and shares its memory if neither
    /// parameter had an array before.
    ///
    /// @param other the template for the other parameter's name
    record Tie(NamePattern parameter, String other) implements Rule {
      public Tie {
        parameter.requireFills(other);
      }

      @Override
      public String toString() {
        return "'" + parameter + "' tied to '" + other + "'";
      }
    }

    /// All elements of the parameter have one value.
    record Constant(NamePattern parameter, float value) implements Rule {
      @Override
      public String toString() {
        return "'" + parameter + "' = " + value;
      }
    }
  }

  /// Gives another name to each stored tensor whose name matches.
  ///
  /// @param name the template for the other name
  public record Alias(NamePattern tensor, String name) {
    public Alias {
      tensor.requireFills(name);
    }

    /// Returns the other name of a stored tensor; empty if the alias does not match it.
    Optional<String> of(String stored) {
      return tensor.match(stored).map(captured -> NamePattern.fill(name, captured));
    }
  }

  /// Tensors that must not be left unused, because the parameters without them would make another
  /// model than the file's.
  ///
  /// @param reason the reason, for the error
  public record Refusal(NamePattern tensors, String reason) {}

  /// How parameters that no rule matches get their tensors.
  public enum Rest {
    /// These parameters get no tensor.
    NONE,
    /// A parameter gets the tensor of its own name.
    SAME_NAME,
    /// The first of these parameters gets the first tensor that no rule uses, the second the
    /// second, and so on.
    BY_ORDER,
    /// A parameter gets the tensor of its shape that no rule uses, if there is only one.
    BY_SHAPE
  }

  /// Each parameter gets the tensor of its own name.
  public static final NameRules SAME =
      new NameRules(List.of(), List.of(), List.of(), List.of(), Rest.SAME_NAME, false, false);

  public NameRules withComplete() {
    return new NameRules(rules, aliases, ignored, refused, rest, strict, true);
  }

  /// Returns a copy of these rules without the rules that match none of these parameters.
  public NameRules of(Collection<String> parameters) {
    List<Rule> some =
        rules.stream()
            .filter(rule -> parameters.stream().anyMatch(rule.parameter()::matches))
            .toList();
    return new NameRules(some, aliases, ignored, refused, rest, strict, complete);
  }

  /// Returns the names of the tensors that a parameter is made of; empty if it is not made of
  /// tensors.
  ///
  /// @param rule the parameter's rule; null if it has none
  public List<String> tensors(String parameter, @Nullable Rule rule) {
    return switch (rule) {
      case Rule.Tensors made -> {
        Map<String, String> captured = made.parameter().match(parameter).orElseThrow();
        yield made.tensors().stream().map(name -> NamePattern.fill(name, captured)).toList();
      }
      case null -> rest == Rest.SAME_NAME ? List.of(parameter) : List.of();
      case Rule.Tie _, Rule.Constant _ -> List.of();
    };
  }

  /// Finds the rule of each of these parameters, in their order. Parameters that no rule matches
  /// are left out.
  ///
  /// @throws MisuseException if two rules match a parameter, or a rule that is not optional
  ///     matches none
  public SequencedMap<String, Rule> matching(Collection<String> parameters) {
    SequencedMap<String, Rule> found = new LinkedHashMap<>();
    for (String path : parameters) {
      List<Rule> matching = rules.stream().filter(rule -> rule.parameter().matches(path)).toList();
      if (matching.size() > 1) {
        throw new MisuseException(
            "parameter '%s' is matched by two rules: %s and %s"
                .formatted(path, matching.get(0), matching.get(1)));
      }
      matching.forEach(rule -> found.put(path, rule));
    }
    Set<Rule> used = new HashSet<>(found.values());
    rules.stream()
        .filter(rule -> !used.contains(rule) && !rule.optional())
        .findFirst()
        .ifPresent(rule -> {
          throw new MisuseException(
              "rule "
                  + rule
                  + " matches no parameter; the parameters are "
                  + Names.listed(Names.first(rule.parameter().toString(), parameters))
                  + rule.parameter().hint(parameters));
        });
    return found;
  }
}
