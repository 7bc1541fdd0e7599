// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.mapping;

import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Measures how alike names are by their common words. Rare words count more than frequent ones.
final class NameWords {
  /// The role of an array in its module. Arrays of different kinds never match.
  enum Kind {
    WEIGHT,
    BIAS,
    MEAN,
    VARIANCE
  }

  private static final Pattern WORD = Pattern.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\\d+");

  /// The number that DJL puts before a child's name, as in `01Linear`.
  private static final Pattern COUNTER = Pattern.compile("(?<![A-Za-z0-9])\\d+(?=[A-Z])");

  private static final Pattern CAPTURE = Pattern.compile("\\{[i-n]}");

  private static final Pattern NUMBER = Pattern.compile("\\d{1,9}");

  private static final Pattern KIND =
      Pattern.compile(
          "(?:(.*?)[._])?(weight|gamma|embedding|bias|beta|running_?mean|running_?var)",
          Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

  private static final double LEAST_WEIGHT = 0.05;

  /// Maps each synonym to its common word; to an empty word if it does not tell arrays apart.
  private static final Map<String, String> WORDS = new HashMap<>();

  static {
    same(
        "", "weight", "bias", "layer", "layers", "block", "blocks", "linear", "dense", "fc",
        "proj");
    same("", "projection", "model", "module", "self", "h", "mean", "var", "running", "sequential");
    same("query", "q");
    same("key", "k");
    same("value", "v");
    same("attention", "attn", "mha", "selfattention");
    same("norm", "ln", "layernorm", "normalization", "rmsnorm", "batchnorm", "bn", "gamma", "beta");
    same("token", "wte", "word", "words", "tokens", "tok");
    same("position", "wpe", "pos", "positions");
    same("embedding", "emb", "embed", "embeds", "embeddings");
    same("mlp", "ffn", "ff", "feedforward");
    same("output", "o", "out", "outputs");
    same("head", "classifier");
  }

  private final Map<String, Integer> frequencies = new HashMap<>();
  private final Map<String, Set<String>> known = new HashMap<>();
  private int names;

  private static void same(String word, String... others) {
    for (String other : others) {
      WORDS.put(other, word);
    }
  }

  /// @param all the names of all parameters and tensors
  NameWords(Collection<String> all) {
    for (String name : all) {
      names++;
      words(name).forEach(word -> frequencies.merge(word, 1, Integer::sum));
    }
  }

  private static String plain(String name) {
    return COUNTER.matcher(CAPTURE.matcher(name).replaceAll("")).replaceAll("");
  }

  static Set<String> words(String name) {
    Set<String> words = new LinkedHashSet<>();
    Matcher matcher = WORD.matcher(plain(name));
    while (matcher.find()) {
      String word = matcher.group().toLowerCase(Locale.ROOT);
      word = WORDS.getOrDefault(word, word);
      if (!word.isEmpty()) {
        words.add(word);
      }
    }
    return words;
  }

  /// Returns how alike two names are, from 0 for no common word to 1 for the same words.
  double likeness(String one, String other) {
    Set<String> ours = new LinkedHashSet<>(known.computeIfAbsent(one, NameWords::words));
    Set<String> theirs = known.computeIfAbsent(other, NameWords::words);
    double all = weight(ours) + weight(theirs);
    ours.retainAll(theirs);
    return all == 0 ? 0 : 2 * weight(ours) / all;
  }

  private double weight(Set<String> words) {
    return words.stream()
        .mapToDouble(word ->
            Math.max(
                LEAST_WEIGHT, Math.log((1.0 + names) / (1 + frequencies.getOrDefault(word, 0)))))
        .sum();
  }

  /// Returns the numbers in a name, without the layer's number and DJL's counters.
  static List<Integer> numbers(String name) {
    return NUMBER
        .matcher(plain(name))
        .results()
        .map(number -> Integer.valueOf(number.group()))
        .toList();
  }

  static Optional<Kind> kind(String name) {
    Matcher matcher = KIND.matcher(name);
    return matcher.matches()
        ? Optional.of(
            switch (matcher.group(2).toLowerCase(Locale.ROOT)) {
              case "weight", "gamma", "embedding" -> Kind.WEIGHT;
              case "bias", "beta" -> Kind.BIAS;
              case "running_mean", "runningmean" -> Kind.MEAN;
              default -> Kind.VARIANCE;
            })
        : Optional.empty();
  }

  /// Returns the module's name: `name` without its last word if that says the kind, else all of
  /// `name`.
  static String module(String name) {
    Matcher matcher = KIND.matcher(name);
    return matcher.matches() ? Objects.requireNonNullElse(matcher.group(1), "") : name;
  }
}
