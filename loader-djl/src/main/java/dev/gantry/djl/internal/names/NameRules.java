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

/// The rules by which parameters get their tensors. Immutable.
///
/// @param rules for parameters, of which at most one may match
/// @param aliases other names that tensors may have in the files
/// @param ignored tensors that no parameter needs
/// @param refused tensors that may not be left out
/// @param rest what happens to parameters that no rule matches
/// @param strict whether every tensor must have one use: unless a [Rule.Tie] says so, no two
///     parameters may have one tensor, and unless it is ignored, no tensor may be left over
/// @param complete whether every parameter must get a value, also in a load of a part
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

  /// Says what the parameters that a pattern matches get.
  public sealed interface Rule {
    NamePattern parameter();

    /// Whether no parameter may match.
    default boolean optional() {
      return false;
    }

    /// The parameter is these tensors, transformed, one behind the other along an axis; usually it is
    /// one tensor.
    ///
    /// @param tensors templates for their names
    /// @param transforms of each of them
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

    /// The parameter has the value of another parameter, and its memory if neither had an array.
    ///
    /// @param other template for its name
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

  /// A tensor whose name matches counts as one of another name.
  ///
  /// @param name template for it
  public record Alias(NamePattern tensor, String name) {
    public Alias {
      tensor.requireFills(name);
    }

    /// The name that a tensor counts as.
    Optional<String> of(String stored) {
      return tensor.match(stored).map(captured -> NamePattern.fill(name, captured));
    }
  }

  /// Tensors without which the parameters would make another model than the file's.
  ///
  /// @param reason for a message
  public record Refusal(NamePattern tensors, String reason) {}

  /// How parameters get tensors that no rule gives them.
  public enum Rest {
    /// They get none.
    NONE,
    /// A parameter gets the tensor of its own name.
    SAME_NAME,
    /// They get the tensors that no rule uses, in order: the first parameter the first tensor, and so on.
    BY_ORDER,
    /// A parameter gets the only tensor of its shape that no rule uses.
    BY_SHAPE
  }

  /// Rules by which each parameter gets the tensor of its own name.
  public static final NameRules SAME =
      new NameRules(List.of(), List.of(), List.of(), List.of(), Rest.SAME_NAME, false, false);

  public NameRules withComplete() {
    return new NameRules(rules, aliases, ignored, refused, rest, strict, true);
  }

  /// Returns these rules without those that match none of these parameters.
  public NameRules of(Collection<String> parameters) {
    List<Rule> some =
        rules.stream()
            .filter(rule -> parameters.stream().anyMatch(rule.parameter()::matches))
            .toList();
    return new NameRules(some, aliases, ignored, refused, rest, strict, complete);
  }

  /// Returns the names of the tensors that a parameter is made of; empty if it is made of none.
  ///
  /// @param rule the parameter's rule, if it has one
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

  /// Finds the rule of each of these parameters, in their order; without those that none matches.
  ///
  /// @throws MisuseException if two rules match a parameter, or a rule matches none
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
