// SPDX-License-Identifier: Apache-2.0
package dev.gantry.fuzz;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;

/// A parser under test.
///
/// @param name the target's name in kebab case, as `.ci/fuzz` takes it
/// @param seeds the inputs with which the search begins
/// @param parser reads an input, or refuses it
/// @param refusals the exceptions by which the parser may refuse an input, besides those that
///     every parser may throw
/// @param mended corrects the checksums of an input, so that the search reaches the code behind
///     them; returns the same input if there are no checksums
record Target(
    String name,
    Seeds seeds,
    Parser parser,
    Set<Class<? extends Exception>> refusals,
    UnaryOperator<byte[]> mended) {
  /// The folder of inputs that broke a rule in an earlier search; they are tried again, so that
  /// mended errors stay mended.
  private static final String FINDINGS = "fuzz/src/test/resources/findings/";

  @FunctionalInterface
  interface Parser {
    void parse(byte[] input) throws Exception;
  }

  /// Returns the inputs with which the search of a target begins.
  @FunctionalInterface
  interface Seeds {
    List<byte[]> all();

    /// Returns the seeds of both.
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
