// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackages;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.type;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.nameMatching;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.lang.ArchRule;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Checks which modules and packages may depend on which: models → loader-djl → formats →
/// loader-core, loader-spark → loader-djl, and langchain4j → models. Only a few packages use
/// native libraries.
class ModuleArrowsTest extends ArchitectureFixture {
  /// The packages that only their own module may use; other internal packages of loader-core and
  /// formats also serve the modules above. The rule leaves out the three packages of loader-djl
  /// whose results the command line prints.
  static Stream<Arguments> privatePackages() {
    return Stream.of(Arguments.of(Module.CORE, NATIVES), Arguments.of(Module.DJL, OF_DJL));
  }

  @ParameterizedTest
  @MethodSource
  void privatePackages(Module module, String packages) {
    check(
        noClasses()
            .that(DescribedPredicate.not(module.classes()))
            .should()
            .dependOnClassesThat(
                resideInAPackage(packages).and(resideOutsideOfPackages(MAPPING, GUARD, DIAGNOSIS))),
        PRODUCT);
  }

  static List<ArchRule> arrows() {
    return List.of(
        noClasses()
            .that(resideInAPackage("dev.gantry.core.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(
                "ai.djl..",
                "software.amazon..",
                "dev.gantry.s3..",
                "dev.gantry.formats..",
                "dev.gantry.djl..",
                "dev.gantry.models..",
                "dev.gantry.cli..",
                "dev.gantry.samples.."),
        noClasses()
            .that(resideOutsideOfPackages("dev.gantry.cli..", "dev.gantry.benchmarks.."))
            .should()
            .dependOnClassesThat(resideInAPackage("dev.gantry.benchmarks..")),
        noClasses()
            .that(resideInAPackage("dev.gantry.benchmarks.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("dev.gantry.cli..", "dev.gantry.samples.."),
        // The command line has loader-s3 on its class path. Its code finds the store as a user's
        // program does, without naming loader-s3's types.
        noClasses()
            .that(resideOutsideOfPackages("dev.gantry.s3..", "dev.gantry.benchmarks.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("software.amazon..", "dev.gantry.s3.."),
        noClasses()
            .that(resideInAPackage("dev.gantry.s3.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(
                "ai.djl..",
                "dev.gantry.formats..",
                "dev.gantry.djl..",
                "dev.gantry.models..",
                "dev.gantry.spark..",
                "dev.gantry.cli..",
                "dev.gantry.samples.."),
        noClasses()
            .that(resideInAPackage("dev.gantry.formats.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(
                "ai.djl..",
                "jcuda..",
                "dev.gantry.djl..",
                "dev.gantry.models..",
                "dev.gantry.spark..",
                "dev.gantry.cli..",
                "dev.gantry.samples.."),
        noClasses()
            .that(resideInAPackage("dev.gantry.djl.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(
                "dev.gantry.models..",
                "dev.gantry.spark..",
                "dev.gantry.cli..",
                "dev.gantry.samples.."),
        noClasses()
            .that(resideInAPackage("dev.gantry.models.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("dev.gantry.spark..", "dev.gantry.cli..", "dev.gantry.samples.."),
        noClasses()
            .that(resideInAPackage("dev.gantry.spark.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("dev.gantry.models..", "dev.gantry.cli..", "dev.gantry.samples.."),
        noClasses()
            .that(resideOutsideOfPackage("dev.gantry.langchain4j.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("dev.gantry.langchain4j..", "dev.langchain4j.."),
        noClasses()
            .that(resideInAPackage("dev.gantry.langchain4j.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(
                "dev.gantry..internal..",
                "dev.gantry.spark..",
                "dev.gantry.cli..",
                "dev.gantry.samples.."),
        noClasses()
            .that(resideInAPackage("dev.gantry.samples.."))
            .should()
            .dependOnClassesThat(resideInAPackage("dev.gantry.cli..")),
        noClasses()
            .that(resideOutsideOfPackage("dev.gantry.benchmarks.."))
            .should()
            .dependOnClassesThat(resideInAPackage("dev.gantry.testing..")));
  }

  @ParameterizedTest
  @MethodSource
  void arrows(ArchRule rule) {
    check(rule);
  }

  /// Libraries that only few packages use, so that each library could be replaced without a
  /// change to other packages.
  static Stream<Arguments> guarded() {
    return Stream.of(
        // Three packages bind foreign functions.
        Arguments.of("java.lang.foreign.Linker", List.of(NATIVES, TORCH, IMAGES)),
        Arguments.of("java.lang.foreign.SymbolLookup", List.of(NATIVES, TORCH, IMAGES)),
        Arguments.of("java.lang.invoke.MethodHandle", List.of(NATIVES, TORCH, GUARD, IMAGES)),
        Arguments.of("jcuda..", List.of(NATIVES)),
        // Only the packages that read and write records and archives use protobuf messages and
        // compression.
        Arguments.of("com.google.protobuf..", List.of(TFRECORD)),
        Arguments.of("org.apache.commons.compress..", List.of(TFRECORD, SOURCE)),
        Arguments.of(
            "java.util.zip.Inflater*", List.of(SOURCE, "dev.gantry.formats.internal.archive")));
  }

  @ParameterizedTest
  @MethodSource
  void guarded(String what, List<String> by) {
    DescribedPredicate<JavaClass> them =
        resideInAPackage(what).or(nameMatching(what.replace(".", "\\.").replace("*", ".*")));
    String[] packages = by.toArray(String[]::new);
    check(
        noClasses().that().resideOutsideOfPackages(packages).should().dependOnClassesThat(them),
        PRODUCT);
    // If no class of the packages used the library, its name might be misspelled, and the rule
    // would check nothing.
    assertThat(HOUSE)
        .anyMatch(type ->
            resideInAnyPackage(packages).test(type)
                && type.getDirectDependenciesFromSelf().stream()
                    .anyMatch(dependency -> them.test(dependency.getTargetClass())));
  }

  @Test
  void roomsDoNotKnowTheSession() {
    check(
        noClasses()
            .that(resideInAPackage("dev.gantry.core..").and(resideOutsideOfPackage(SESSION)))
            .should()
            .dependOnClassesThat()
            .resideInAPackage(SESSION));
  }

  /// A user who copies a sample must not depend on internal types, which may change without
  /// notice.
  @Test
  void samplesNeedOnlyThePublicApi() {
    check(
        noClasses()
            .that(resideInAPackage("dev.gantry.samples.."))
            .should()
            .dependOnClassesThat()
            .resideInAPackage("dev.gantry..internal.."));
  }

  /// Only loader-spark and the samples depend on Spark, and loader-spark has one public type.
  @Test
  void sparkIsBehindItsModule() {
    check(
        noClasses()
            .that()
            .resideOutsideOfPackages("dev.gantry.spark..", "dev.gantry.samples..")
            .should()
            .dependOnClassesThat()
            .resideInAPackage("org.apache.spark.."));
    assertThat(
            HOUSE.stream()
                .filter(type -> type.getPackageName().equals(Module.SPARK.root))
                .filter(type ->
                    type.isTopLevelClass() && type.getModifiers().contains(JavaModifier.PUBLIC))
                .map(JavaClass::getSimpleName))
        .containsExactly("BatchInference");
  }
}
