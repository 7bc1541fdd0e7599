// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.mapping;

import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.weights.ParameterFit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;

/// Pairs parameters with tensors. Each iteration accepts the certain pairs, and learns from them
/// which modules belong together. The iterations end when nothing more is certain. An instance
/// makes one map.
final class Matching {
  /// A certain pair's score must exceed that of its next rival by this margin.
  private static final double MARGIN = 0.1;

  /// How alike names must be where several pairs have the shape. The next constant is for pairs of
  /// unknown shape.
  private static final double LEAST = 0.3;

  private static final double LEAST_WITHOUT_SHAPE = 0.6;

  private static final double OF_ONE_MODULE = 0.5;

  /// Subtracted from a pair's score for each kind of array that only one of the two modules has.
  private static final double OF_ANOTHER_KIND = 0.1;

  private static final double OF_SAME_NUMBERS = 0.2;

  private static final double IMPOSSIBLE = -100;

  private record Candidate(
      Family parameter, Family tensor, boolean transposed, boolean shaped, double score) {}

  private final List<Named> all;
  private final Map<String, List<Family>> modules = new HashMap<>();
  private final Map<String, List<Family>> modulesOfTensors = new HashMap<>();
  private final NameWords words;
  private final List<BlockMap.Match> matches = new ArrayList<>();
  private final Map<String, String> tensorModules = new HashMap<>();
  private final Map<String, String> parameterModules = new HashMap<>();
  private List<Family> parameters;
  private List<Family> tensors;

  Matching(List<Named> parameters, List<Named> tensors) {
    all = parameters;
    words =
        new NameWords(
            Stream.concat(parameters.stream(), tensors.stream()).map(Named::name).toList());
    this.parameters = new ArrayList<>(Family.of(parameters));
    this.tensors = new ArrayList<>(Family.of(tensors));
    addModules();
  }

  BlockMap map() {
    matchAll();
    split();
    matchAll();
    List<Candidate> left = candidates();
    SequencedMap<Family, List<Family>> ambiguous = new LinkedHashMap<>();
    List<Family> missing = new ArrayList<>();
    for (Family parameter : parameters) {
      List<Family> likely =
          left.stream()
              .filter(candidate -> candidate.parameter().equals(parameter))
              .sorted(Comparator.comparingDouble(Candidate::score).reversed())
              .map(Candidate::tensor)
              .toList();
      if (likely.isEmpty()) {
        missing.add(parameter);
      } else {
        ambiguous.put(parameter, likely);
      }
    }
    Map<String, Integer> order = new HashMap<>();
    all.forEach(named -> order.put(named.name(), order.size()));
    matches.sort(
        Comparator.comparingInt(match ->
            order.getOrDefault(match.parameters().members().getFirst().named().name(), 0)));
    List<Named> without =
        missing.stream()
            .flatMap(each -> each.members().stream())
            .map(Family.Member::named)
            .toList();
    return new BlockMap(List.copyOf(matches), ambiguous, Family.of(without), List.copyOf(tensors));
  }

  /// Splits the numbered families that match no family of the other side into single names, so
  /// that these are matched one by one.
  private void split() {
    Set<Family> fitting = new HashSet<>();
    for (Candidate candidate : candidates()) {
      fitting.add(candidate.parameter());
      fitting.add(candidate.tensor());
    }
    parameters = split(parameters, fitting);
    tensors = split(tensors, fitting);
    modules.clear();
    modulesOfTensors.clear();
    addModules();
    matches.forEach(match -> {
      add(modules, match.parameters());
      add(modulesOfTensors, match.tensors());
    });
  }

  private static List<Family> split(List<Family> families, Set<Family> fitting) {
    List<Family> split = new ArrayList<>();
    families.forEach(each -> split.addAll(fitting.contains(each) ? List.of(each) : each.singles()));
    return split;
  }

  private void matchAll() {
    boolean found = true;
    while (found) {
      List<Candidate> candidates = candidates();
      Map<Family, List<Candidate>> ofParameter = group(candidates, Candidate::parameter);
      Map<Family, List<Candidate>> ofTensor = group(candidates, Candidate::tensor);
      found = false;
      for (Candidate candidate : candidates) {
        List<Candidate> rivals =
            Stream.concat(
                    ofParameter.getOrDefault(candidate.parameter(), List.of()).stream(),
                    ofTensor.getOrDefault(candidate.tensor(), List.of()).stream())
                .filter(rival -> !rival.equals(candidate))
                .toList();
        if (isCertain(candidate, rivals)) {
          take(candidate, rivals.isEmpty() ? BlockMap.Reason.SHAPE : BlockMap.Reason.NAME);
          found = true;
        }
      }
    }
  }

  private static Map<Family, List<Candidate>> group(
      List<Candidate> candidates, Function<Candidate, Family> side) {
    Map<Family, List<Candidate>> groups = new HashMap<>();
    candidates.forEach(
        each -> groups.computeIfAbsent(side.apply(each), _ -> new ArrayList<>()).add(each));
    return groups;
  }

  /// Whether a candidate clearly beats all of its rivals. Two certain candidates never share a
  /// family, because each would be the other's rival.
  private static boolean isCertain(Candidate candidate, List<Candidate> rivals) {
    if (rivals.isEmpty() && candidate.shaped()) {
      return candidate.score() >= 0;
    }
    return candidate.score() >= (candidate.shaped() ? LEAST : LEAST_WITHOUT_SHAPE)
        && rivals.stream().allMatch(rival -> rival.score() < candidate.score() - MARGIN);
  }

  private void take(Candidate candidate, BlockMap.Reason reason) {
    matches.add(
        new BlockMap.Match(
            candidate.parameter(), candidate.tensor(), candidate.transposed(), reason));
    parameters.remove(candidate.parameter());
    tensors.remove(candidate.tensor());
    String ours = NameWords.module(candidate.parameter().pattern());
    String theirs = NameWords.module(candidate.tensor().pattern());
    if (!ours.isEmpty() && !theirs.isEmpty()) {
      tensorModules.putIfAbsent(ours, theirs);
      parameterModules.putIfAbsent(theirs, ours);
    }
  }

  private void addModules() {
    parameters.forEach(each -> add(modules, each));
    tensors.forEach(each -> add(modulesOfTensors, each));
  }

  private static void add(Map<String, List<Family>> modules, Family family) {
    modules.computeIfAbsent(NameWords.module(family.pattern()), _ -> new ArrayList<>()).add(family);
  }

  private List<Candidate> candidates() {
    List<Candidate> candidates = new ArrayList<>();
    for (Family parameter : parameters) {
      for (Family tensor : tensors) {
        candidate(parameter, tensor).ifPresent(candidates::add);
      }
    }
    return candidates;
  }

  /// How the shapes of two families agree.
  ///
  /// @param known whether all shapes are known
  private record Fit(boolean straight, boolean transposed, boolean known) {
    static Fit of(Family parameter, Family tensor) {
      boolean straight = parameter.members().size() == tensor.members().size();
      boolean transposed = straight;
      boolean known = true;
      for (int i = 0; (straight || transposed) && i < parameter.members().size(); i++) {
        Optional<TensorShape> wanted = parameter.members().get(i).named().shape();
        Optional<TensorShape> there = tensor.members().get(i).named().shape();
        known &= wanted.isPresent() && there.isPresent();
        if (wanted.isPresent() && there.isPresent()) {
          straight &= wanted.equals(there);
          transposed &= ParameterFit.areTransposed(wanted.get(), there.get());
        }
      }
      return new Fit(straight, transposed, known);
    }

    boolean fits() {
      return straight || transposed;
    }
  }

  private Optional<Candidate> candidate(Family parameter, Family tensor) {
    Optional<NameWords.Kind> kind = NameWords.kind(parameter.pattern());
    Optional<NameWords.Kind> other = NameWords.kind(tensor.pattern());
    Fit fit = Fit.of(parameter, tensor);
    if (!fit.fits() || (kind.isPresent() && other.isPresent() && !kind.equals(other))) {
      return Optional.empty();
    }
    double ofModules = modulesFit(parameter, tensor);
    return ofModules <= IMPOSSIBLE
        ? Optional.empty()
        : Optional.of(
            new Candidate(
                parameter,
                tensor,
                !fit.straight(),
                fit.known(),
                score(parameter, tensor) + ofModules));
  }

  /// Scores how well the other arrays of the two modules fit. For example, if the weights of two
  /// modules differ in shape, their biases cannot belong together.
  private double modulesFit(Family parameter, Family tensor) {
    Map<NameWords.Kind, Family> ours = byKind(parameter, modules);
    Map<NameWords.Kind, Family> theirs = byKind(tensor, modulesOfTensors);
    if (ours.isEmpty() || theirs.isEmpty()) {
      return 0;
    }
    double score = 0;
    for (NameWords.Kind kind : NameWords.Kind.values()) {
      Family our = ours.get(kind);
      Family their = theirs.get(kind);
      if (our != null && their != null && !Fit.of(our, their).fits()) {
        return IMPOSSIBLE;
      }
      score -= (our == null) == (their == null) ? 0 : OF_ANOTHER_KIND;
    }
    return score;
  }

  private static Map<NameWords.Kind, Family> byKind(
      Family family, Map<String, List<Family>> modules) {
    Map<NameWords.Kind, Family> byKind = new EnumMap<>(NameWords.Kind.class);
    for (Family each : modules.getOrDefault(NameWords.module(family.pattern()), List.of())) {
      NameWords.kind(each.pattern()).ifPresent(kind -> byKind.put(kind, each));
    }
    return byKind;
  }

  private double score(Family parameter, Family tensor) {
    double score = words.likeness(parameter.pattern(), tensor.pattern());
    List<Integer> numbers = NameWords.numbers(parameter.pattern());
    List<Integer> theirNumbers = NameWords.numbers(tensor.pattern());
    if (!numbers.isEmpty() && numbers.size() == theirNumbers.size()) {
      score += numbers.equals(theirNumbers) ? OF_SAME_NUMBERS : -OF_SAME_NUMBERS;
    }
    String ours = NameWords.module(parameter.pattern());
    String theirs = NameWords.module(tensor.pattern());
    String expected = tensorModules.get(ours);
    String expectedOurs = parameterModules.get(theirs);
    if (expected != null || expectedOurs != null) {
      score += theirs.equals(expected) ? OF_ONE_MODULE : -OF_ONE_MODULE;
    }
    return score;
  }
}
