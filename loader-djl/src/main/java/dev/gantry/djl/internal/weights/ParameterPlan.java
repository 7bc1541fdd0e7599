// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.util.Pair;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.names.NamePattern;
import dev.gantry.djl.internal.names.NameRules;
import dev.gantry.djl.internal.names.Names;
import dev.gantry.djl.internal.names.TensorNames;
import dev.gantry.formats.TensorTransform;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The tensors that fill each parameter, found by applying the rules to one block and one
/// catalogue. The plan depends on names only; [ParameterFit] checks shapes and types.
///
/// @param fills the fills by path. A parameter with several paths has one fill
/// @param missing the parameters without a fill, by path
/// @param ignored tensors that only [NameRules#ignored] names
/// @param unexpected tensors that nothing names
record ParameterPlan(
    SequencedMap<String, Fill> fills,
    SequencedMap<String, Parameter> missing,
    List<String> ignored,
    List<String> unexpected) {
  /// The source of a parameter's value.
  sealed interface Fill {
    Parameter parameter();
  }

  /// Tensors that are concatenated along an axis; usually one tensor.
  ///
  /// @param rule the rule that matched, for messages
  record Tensors(
      Parameter parameter,
      List<StoredTensor> tensors,
      int axis,
      List<TensorTransform> transforms,
      String rule)
      implements Fill {
    /// Whether two parameters get the same value.
    boolean sameAs(Tensors other) {
      return tensors.equals(other.tensors)
          && axis == other.axis
          && transforms.equals(other.transforms);
    }

    List<String> names() {
      return tensors.stream().map(StoredTensor::name).toList();
    }
  }

  /// One value for all elements.
  record Constant(Parameter parameter, float value) implements Fill {}

  /// @throws MisuseException if rules contradict each other, or, unless the load is partial, a parameter
  ///     has no fill or a tensor no use
  static ParameterPlan of(
      SequencedMap<String, StoredTensor> tensors,
      ParameterList parameters,
      NameRules rules,
      LoadSettings settings) {
    return new Maker(tensors, parameters, rules, settings).make();
  }

  /// Applies rules to the parameters of a block and the tensors of a catalogue. For one plan.
  private static final class Maker {
    private final SequencedMap<String, StoredTensor> tensors;
    private final SequencedMap<String, Parameter> parameters = new LinkedHashMap<>();
    private final NameRules rules;
    private final LoadSettings settings;
    private final TensorNames names;
    private final SequencedMap<String, Fill> fills = new LinkedHashMap<>();
    private final SequencedMap<String, String> ties = new LinkedHashMap<>();
    private final List<String> reasons = new ArrayList<>();
    private final Set<String> used = new HashSet<>();

    Maker(
        SequencedMap<String, StoredTensor> tensors,
        ParameterList parameters,
        NameRules rules,
        LoadSettings settings) {
      this.tensors = tensors;
      this.rules = rules;
      this.settings = settings;
      this.names = new TensorNames(tensors.keySet(), rules);
      for (Pair<String, Parameter> pair : parameters) {
        this.parameters.put(pair.getKey(), pair.getValue());
      }
    }

    ParameterPlan make() {
      boolean partial = settings.partial();
      SequencedMap<String, Parameter> free = new LinkedHashMap<>(parameters);
      rules
          .matching(parameters.keySet())
          .forEach((path, rule) -> {
            free.remove(path);
            apply(rule, path, parameter(path));
          });
      addRest(free);
      ties.forEach(this::tie);
      requireOnce();
      SequencedMap<String, Parameter> missing = missing();
      List<String> ignored = new ArrayList<>();
      List<String> unexpected = new ArrayList<>();
      for (String name : tensors.keySet()) {
        if (!used.contains(name)) {
          requireNotRefused(name);
          (isIgnored(name) ? ignored : unexpected).add(name);
        }
      }
      List<String> refused = rules.strict() && !partial ? unexpected : List.of();
      boolean whole = rules.complete() || !partial;
      if ((whole && !missing.isEmpty()) || !refused.isEmpty()) {
        throw incomplete(missing, refused);
      }
      return new ParameterPlan(fills, missing, ignored, unexpected);
    }

    private Parameter parameter(String path) {
      return Objects.requireNonNull(parameters.get(path), path);
    }

    private void requireNotRefused(String name) {
      Set<String> all = allNames(name);
      for (NameRules.Refusal refusal : rules.refused()) {
        if (all.stream().anyMatch(refusal.tensors()::matches)) {
          throw new MisuseException("tensor '" + name + "' is refused: " + refusal.reason());
        }
      }
    }

    private boolean isIgnored(String name) {
      Set<String> all = allNames(name);
      return rules.ignored().stream().anyMatch(pattern -> all.stream().anyMatch(pattern::matches));
    }

    private Set<String> allNames(String name) {
      Set<String> all = new HashSet<>(names.aliases(name));
      all.add(name);
      return all;
    }

    private @Nullable StoredTensor tensor(String name) {
      return names.find(name).map(tensors::get).orElse(null);
    }

    private void apply(NameRules.Rule rule, String path, Parameter parameter) {
      Map<String, String> captured = rule.parameter().match(path).orElseThrow();
      switch (rule) {
        case NameRules.Rule.Tensors made -> {
          List<StoredTensor> found = new ArrayList<>();
          for (String template : made.tensors()) {
            String name = NamePattern.fill(template, captured);
            StoredTensor tensor = tensor(name);
            if (tensor == null) {
              reasons.add("for '" + path + "' " + Names.unknown(name, tensors.keySet()));
              return;
            }
            found.add(tensor);
          }
          add(path, new Tensors(parameter, found, made.axis(), made.transforms(), made.toString()));
        }
        case NameRules.Rule.Constant(_, float value) ->
            fills.put(path, new Constant(parameter, value));
        case NameRules.Rule.Tie(_, String other) -> {
          String name = NamePattern.fill(other, captured);
          if (!parameters.containsKey(name) || name.equals(path)) {
            throw new MisuseException(
                "rule %s: there is no other parameter '%s'; the parameters are %s"
                    .formatted(rule, name, Names.listed(parameters.keySet())));
          }
          ties.put(path, name);
        }
      }
    }

    private void add(String path, Tensors fill) {
      for (StoredTensor tensor : fill.tensors()) {
        used.add(tensor.name());
      }
      fills.put(path, fill);
    }

    private void tie(String path, String other) {
      if (fills.get(other) instanceof Tensors fill) {
        fills.put(
            path,
            new Tensors(
                parameter(path),
                fill.tensors(),
                fill.axis(),
                fill.transforms(),
                "'" + path + "' tied to '" + other + "'"));
      } else {
        reasons.add("'" + path + "' is tied to '" + other + "', which has none");
      }
    }

    private void addRest(SequencedMap<String, Parameter> free) {
      switch (rules.rest()) {
        case NONE -> {}
        case SAME_NAME ->
            free.forEach((path, parameter) -> {
              StoredTensor tensor = tensor(path);
              if (tensor == null) {
                reasons.add(Names.unknown(path, tensors.keySet()));
              } else {
                add(path, plain(parameter, tensor, "its own name"));
              }
            });
        case BY_ORDER ->
            Unmatched.byOrder(free, unusedTensors())
                .forEach((path, tensor) -> add(path, plain(parameter(path), tensor, "by order")));
        case BY_SHAPE ->
            Unmatched.byShape(free, unusedTensors())
                .forEach((path, tensor) -> add(path, plain(parameter(path), tensor, "by shape")));
      }
    }

    private static Tensors plain(Parameter parameter, StoredTensor tensor, String rule) {
      return new Tensors(parameter, List.of(tensor), 0, List.of(), rule);
    }

    private List<StoredTensor> unusedTensors() {
      return tensors.values().stream()
          .filter(tensor -> !used.contains(tensor.name()))
          .filter(tensor -> !isIgnored(tensor.name()))
          .toList();
    }

    /// Refuses two parameters that are filled by the same whole tensor, unless they are tied.
    /// Several parameters may be filled by parts of one tensor.
    private void requireOnce() {
      Map<Parameter, Map.Entry<String, Fill>> firsts = new HashMap<>();
      Map<String, String> wholes = new HashMap<>();
      SequencedMap<String, Fill> once = new LinkedHashMap<>();
      parameters.forEach((path, parameter) -> {
        Fill fill = fills.get(path);
        if (fill == null) {
          return;
        }
        var first = firsts.putIfAbsent(parameter, Map.entry(path, fill));
        if (first != null) {
          requireSame(first.getKey(), first.getValue(), path, fill);
          once.put(path, fill);
          return;
        }
        once.put(path, fill);
        if (!rules.strict() || ties.containsKey(path) || !(fill instanceof Tensors made)) {
          return;
        }
        for (StoredTensor tensor : made.tensors()) {
          String key = tensor.name() + '\0' + selection(made);
          String other = wholes.putIfAbsent(key, path);
          if (other != null) {
            throw new MisuseException(
                ("tensor '%s' is claimed by two rules: for parameter '%s' and for '%s'; "
                        + "use tie(…) if they share it")
                    .formatted(tensor.name(), other, path));
          }
        }
      });
      fills.clear();
      fills.putAll(once);
    }

    private static void requireSame(String firstPath, Fill first, String path, Fill fill) {
      boolean same =
          (first instanceof Tensors one && fill instanceof Tensors other)
              ? one.sameAs(other)
              : first.equals(fill);
      if (!same) {
        throw new MisuseException(
            "%s does not fit parameter '%s': as '%s' the parameter gets %s"
                .formatted(described(fill), path, firstPath, described(first)));
      }
    }

    private static String described(Fill fill) {
      return switch (fill) {
        case Tensors made -> Names.listed(made.names());
        case Constant(_, float value) -> String.valueOf(value);
      };
    }

    /// Text that tells the parts of a tensor apart.
    private static String selection(Tensors fill) {
      return String.valueOf(
          fill.transforms().stream()
              .filter(transform ->
                  transform instanceof TensorTransform.Part
                      || transform instanceof TensorTransform.Slice)
              .toList());
    }

    /// The parameters without a fill. A parameter with several paths needs a fill under only one
    /// of them.
    private SequencedMap<String, Parameter> missing() {
      Set<Parameter> filled = new HashSet<>();
      fills.values().forEach(fill -> filled.add(fill.parameter()));
      SequencedMap<String, Parameter> missing = new LinkedHashMap<>();
      parameters.forEach((path, parameter) -> {
        if (!filled.contains(parameter)) {
          missing.put(path, parameter);
        }
      });
      return missing;
    }

    private MisuseException incomplete(
        SequencedMap<String, Parameter> missing, List<String> unexpected) {
      List<String> parts = new ArrayList<>();
      if (!missing.isEmpty()) {
        String first = reasons.isEmpty() ? "" : " (" + reasons.getFirst() + ")";
        parts.add("there is no tensor for " + Names.listed(missing.keySet()) + first);
      }
      if (!unexpected.isEmpty()) {
        parts.add("no parameter takes " + count(unexpected) + Names.listed(unexpected));
      }
      if (!missing.isEmpty() && !rules.complete() && settings.byOptions()) {
        parts.add("optPartial(true) leaves them as they are, or at random where they are new");
      }
      if (!unexpected.isEmpty()) {
        parts.add(
            "ignore(…) in the names"
                + (settings.byOptions() ? " or optPartial(true)" : "")
                + " leaves tensors out");
      }
      return new MisuseException(String.join("; ", parts));
    }

    private static String count(Collection<String> names) {
      return names.size() == 1 ? "tensor " : "the " + names.size() + " tensors ";
    }
  }
}
