// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.type;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.core.importer.Location;
import com.tngtech.archunit.core.importer.Locations;
import com.tngtech.archunit.lang.ArchRule;
import java.nio.file.Path;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// All classes of the project, and the modules that they belong to.
///
/// The tests of the architecture lie in cli, because only cli has nearly all modules on its class
/// path; [#besideTheCommandLine] names the others.
abstract class ArchitectureFixture {
  static final String NATIVES = "dev.gantry.core.internal.natives..";
  static final String SESSION = "dev.gantry.core.internal.session";
  static final String OF_DJL = "dev.gantry.djl.internal..";
  static final String MAPPING = "dev.gantry.djl.internal.mapping";
  static final String DIAGNOSIS = "dev.gantry.djl.internal.diagnosis";
  static final String TORCH = "dev.gantry.djl.internal.torch";
  static final String GUARD = "dev.gantry.djl.internal.ndarray";
  static final String TFRECORD = "dev.gantry.formats.tfrecord";
  static final String SOURCE = "dev.gantry.formats.internal.source";

  static final String IMAGES = "dev.gantry.formats.internal.images";

  static final String EXAMPLES = "dev.gantry.formats.internal.examples";

  static final JavaClasses HOUSE =
      new ClassFileImporter()
          .withImportOption(new ImportOption.DoNotIncludeTests())
          .withImportOption(ArchitectureFixture::isNotOfTesting)
          .importLocations(
              Stream.concat(Locations.ofPackage("dev.gantry").stream(), besideTheCommandLine())
                  .collect(Collectors.toSet()));

  /// The classes without the benchmarks. Benchmarks also call other libraries, the driver and the
  /// natives directly, to measure what lies below this library.
  static final JavaClasses PRODUCT =
      HOUSE.that(
          DescribedPredicate.describe(
              "of the product", type -> !Module.BENCHMARKS.mayHold(type.getName())));

  /// Returns the class folders of the modules that use Spark or LangChain4j. The command line
  /// must build without these modules, so they are not on its class path.
  static Stream<Location> besideTheCommandLine() {
    return Stream.of(
            Path.of("..", "loader-spark"),
            Path.of("..", "samples", "spark"),
            Path.of("..", "langchain4j"))
        .map(module -> Location.of(module.resolve("target").resolve("classes")));
  }

  enum Module {
    CORE("loader-core", "dev.gantry.core"),
    S3("loader-s3", "dev.gantry.s3"),
    FORMATS("formats", "dev.gantry.formats"),
    DJL("loader-djl", "dev.gantry.djl"),
    MODELS("models", "dev.gantry.models"),
    SPARK("loader-spark", "dev.gantry.spark"),
    LANGCHAIN4J("langchain4j", "dev.gantry.langchain4j"),
    SAMPLES("samples", "dev.gantry.samples"),
    SAMPLES_ON_SPARK("samples/spark", "dev.gantry.samples.spark"),
    BENCHMARKS("benchmarks", "dev.gantry.benchmarks"),
    CLI("cli", "dev.gantry.cli");

    final String folder;
    final String root;

    Module(String folder, String root) {
      this.folder = folder;
      this.root = root;
    }

    boolean mayHold(String className) {
      return className.startsWith(root + ".");
    }

    DescribedPredicate<JavaClass> classes() {
      return DescribedPredicate.describe("of " + folder, type -> mayHold(type.getName()));
    }
  }

  /// ArchUnit also reports a rule that applies to no class. [ArchitectureTest] ensures that no class
  /// was overlooked.
  static void check(ArchRule rule) {
    check(rule, HOUSE);
  }

  static void check(ArchRule rule, JavaClasses classes) {
    rule.check(classes);
  }

  static boolean isNotOfTesting(Location location) {
    return !location.contains("/testing");
  }
}
