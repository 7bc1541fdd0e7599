// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;

/// A parser under test.
///
/// @param name in kebab case, as `.ci/fuzz` takes it
/// @param seeds inputs that the search begins with
/// @param parser reads an input, or refuses it
/// @param refusals exceptions by which it may refuse one, besides those that any parser may throw
/// @param mended makes the checksums of an input right, so that what lies behind them is reached; the same input if there
///     are none
record Target(
    String name,
    Seeds seeds,
    Parser parser,
    Set<Class<? extends Exception>> refusals,
    UnaryOperator<byte[]> mended) {
  /// Where inputs lie that a search has found, so that what was mended stays so.
  private static final String FINDINGS = "fuzz/src/test/resources/findings/";

  /// Reads an input.
  @FunctionalInterface
  interface Parser {
    void parse(byte[] input) throws Exception;
  }

  /// Returns the inputs that a target begins with.
  @FunctionalInterface
  interface Seeds {
    List<byte[]> all();

    /// Those of two origins.
    default Seeds and(Seeds others) {
      return () -> {
        List<byte[]> both = new ArrayList<>(all());
        both.addAll(others.all());
        return both;
      };
    }
  }

  static Target of(String name, Seeds seeds, Parser parser) {
    Seeds found = SeedFiles.files(FINDINGS + name, ".*");
    return new Target(name, seeds.and(found), parser, Set.of(), UnaryOperator.identity());
  }

  Target mended(UnaryOperator<byte[]> mending) {
    return new Target(name, seeds, parser, refusals, mending);
  }

  Target mayThrow(Class<? extends Exception> other) {
    Set<Class<? extends Exception>> all = new HashSet<>(refusals);
    all.add(other);
    return new Target(name, seeds, parser, Set.copyOf(all), mended);
  }

  @Override
  public String toString() {
    return name;
  }
}
