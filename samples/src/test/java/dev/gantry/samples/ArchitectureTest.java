package dev.gantry.samples;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.type;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.core.importer.Location;
import com.tngtech.archunit.lang.ArchRule;
import java.io.IOException;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/// The arrows of the house: loader-djl → formats → loader-core, natives in their room, the planner
/// pure.
///
/// It stands in samples because only from here all modules are on the class path.
class ArchitectureTest {
  private static final String NATIVES = "dev.gantry.core.internal.natives..";

  private static final JavaClasses HOUSE =
      new ClassFileImporter()
          .withImportOption(new ImportOption.DoNotIncludeTests())
          .withImportOption(ArchitectureTest::isNotATestJar)
          .importPackages("dev.gantry", "ai.djl.pytorch.engine");

  enum Module {
    CORE("loader-core", "dev.gantry.core"),
    FORMATS("formats", "dev.gantry.formats"),
    /// A guest in DJL's package too, for constructors that are visible only there.
    DJL("loader-djl", "dev.gantry.djl", "ai.djl.pytorch.engine"),
    SAMPLES("samples", "dev.gantry.samples");

    final String folder;
    final String root;
    final String guestIn;

    Module(String folder, String root) {
      this(folder, root, root);
    }

    Module(String folder, String root, String guestIn) {
      this.folder = folder;
      this.root = root;
      this.guestIn = guestIn;
    }

    boolean mayHold(String className) {
      return className.startsWith(root + ".") || className.startsWith(guestIn + ".");
    }

    DescribedPredicate<JavaClass> classes() {
      return DescribedPredicate.describe("of " + folder, type -> mayHold(type.getName()));
    }
  }

  /// A rule about classes that were not imported holds always; so all sources must have been.
  @ParameterizedTest
  @EnumSource
  void everySourceOfTheModuleIsUnderTheRules(Module module) throws IOException {
    Path sources = Path.of("..", module.folder, "src", "main", "java");
    assertThat(HOUSE).isNotEmpty();
    assertThat(namesOf(sources))
        .allMatch(module::mayHold, "in packages of " + module.folder)
        .allMatch(HOUSE::contain, "imported");
  }

  @ParameterizedTest
  @EnumSource
  void internalPackagesServeTheirOwnModuleOnly(Module module) {
    check(
        noClasses()
            .that(DescribedPredicate.not(module.classes()))
            .should()
            .dependOnClassesThat(resideInAPackage(module.root + "..internal..")));
  }

  static List<ArchRule> arrows() {
    return List.of(
        noClasses()
            .that(resideInAPackage("dev.gantry.core.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(
                "ai.djl..", "dev.gantry.formats..", "dev.gantry.djl..", "dev.gantry.samples.."),
        noClasses()
            .that(resideInAPackage("dev.gantry.formats.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("ai.djl..", "jcuda..", "dev.gantry.djl..", "dev.gantry.samples.."),
        noClasses()
            .that(resideInAPackage("dev.gantry.djl.."))
            .should()
            .dependOnClassesThat(resideInAPackage("dev.gantry.samples..")));
  }

  @ParameterizedTest
  @MethodSource
  void arrows(ArchRule rule) {
    check(rule);
  }

  @Test
  void jcudaIsKnownToTheNativesOnly() {
    check(
        noClasses()
            .that(resideOutsideOfPackage(NATIVES))
            .should()
            .dependOnClassesThat(resideInAPackage("jcuda..")));
  }

  @Test
  void foreignFunctionsAreBoundInTwoPlaces() {
    DescribedPredicate<JavaClass> bindings = type(Linker.class).or(type(SymbolLookup.class));
    check(
        noClasses()
            .that()
            .resideOutsideOfPackages(NATIVES, "dev.gantry.djl.internal..")
            .should()
            .dependOnClassesThat(bindings));
  }

  @Test
  void plannerIsPure() {
    check(
        classes()
            .that(resideInAPackage("dev.gantry.core.plan.."))
            .should()
            .onlyDependOnClassesThat(
                resideInAPackage("java.lang..")
                    .or(resideInAPackage("java.util.."))
                    .or(type(Path.class))
                    .or(resideInAPackage("org.jspecify.."))
                    .or(resideInAPackage("dev.gantry.core"))
                    .or(resideInAPackage("dev.gantry.core.plan.."))));
    check(
        noClasses()
            .that(resideInAPackage("dev.gantry.core.plan.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("java.lang.foreign..", "java.util.concurrent.."));
  }

  /// A module without classes yet breaks no rule; that none was overlooked is the first test's
  /// business.
  private static void check(ArchRule rule) {
    rule.allowEmptyShould(true).check(HOUSE);
  }

  private static boolean isNotATestJar(Location location) {
    return !location.contains("-tests.jar");
  }

  private static List<String> namesOf(Path sources) throws IOException {
    if (!Files.isDirectory(sources)) {
      return List.of();
    }
    try (Stream<Path> files = Files.walk(sources)) {
      return files
          .map(file -> sources.relativize(file).toString())
          .filter(name -> name.endsWith(".java") && !name.equals("module-info.java"))
          .map(name -> name.substring(0, name.length() - ".java".length()).replace('/', '.'))
          .toList();
    }
  }
}
