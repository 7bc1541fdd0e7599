// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static com.tngtech.archunit.core.domain.JavaCall.Predicates.target;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackages;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.type;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.nameMatching;
import static com.tngtech.archunit.core.domain.properties.HasOwner.Predicates.With.owner;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import dev.gantry.core.Session;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.Copy2D;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/// Rules for all modules: few files in a package, no cycles, and one place for natives, threads,
/// the clock and the writing of files. The planner is pure.
class ArchitectureTest extends ArchitectureFixture {
  /// The most files of a package. A reader can take in this many at a glance.
  private static final int MAX_FILES = 22;

  /// The most files of loader-djl's public package. The types that users write lie in one package,
  /// so that users need not search for them.
  private static final int MAX_FILES_OF_THE_FACE = 29;

  /// A rule holds for all classes that were not imported. Therefore the classes of all sources
  /// must have been imported.
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
  void packagesHaveFewFiles(Module module) throws IOException {
    Map<String, Long> files =
        namesOf(Path.of("..", module.folder, "src", "main", "java")).stream()
            .collect(
                Collectors.groupingBy(
                    name -> name.substring(0, name.lastIndexOf('.')), Collectors.counting()));
    assertThat(files)
        .allSatisfy((name, count) ->
            assertThat(count)
                .isLessThanOrEqualTo(
                    name.equals(Module.DJL.root) ? MAX_FILES_OF_THE_FACE : MAX_FILES));
  }

  /// If a library brought a libtorch, all its users' programs would have this libtorch, whatever
  /// device they use: on a GPU host, DJL would take a libtorch for the CPU.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "loader-core",
        "loader-s3",
        "formats",
        "loader-djl",
        "models",
        "loader-spark",
        "langchain4j"
      })
  void librariesLeaveTheLibtorchToPrograms(String module) throws Exception {
    NodeList dependencies =
        DocumentBuilderFactory.newInstance()
            .newDocumentBuilder()
            .parse(Path.of("..", module, "pom.xml").toFile())
            .getElementsByTagName("dependency");
    assertThat(IntStream.range(0, dependencies.getLength()))
        .extracting(i -> (Element) dependencies.item(i))
        .filteredOn(each -> text(each, "artifactId").matches("pytorch-(jni|native).*"))
        .allSatisfy(each -> assertThat(text(each, "scope")).isEqualTo("test"));
  }

  private static String text(Element dependency, String name) {
    NodeList found = dependency.getElementsByTagName(name);
    return found.getLength() == 0 ? "" : found.item(0).getTextContent();
  }

  @Test
  void packagesFormNoCycle() {
    SliceAssignment byPackage =
        new SliceAssignment() {
          @Override
          public SliceIdentifier getIdentifierOf(JavaClass type) {
            String name = type.getPackageName();
            return name.startsWith("dev.gantry.")
                ? SliceIdentifier.of(name)
                : SliceIdentifier.ignore();
          }

          @Override
          public String getDescription() {
            return "packages";
          }
        };
    check(slices().assignedFrom(byPackage).should().beFreeOfCycles());
  }

  /// The wall clock may be set while a program runs, so durations are measured by
  /// `System.nanoTime`. Four classes need the date: `CacheFolder` sets the times of files,
  /// `ChatTemplate` tells a model the date, `RemoteFault` waits until a date that a server names,
  /// and `AzureService` signs the date.
  @Test
  void librariesDoNotAskTheWallClock() {
    DescribedPredicate<JavaClass> files =
        DescribedPredicate.describe(
            "which sets the times of files, tells or signs the date, or waits until a server's",
            type ->
                Set.of("AzureService", "CacheFolder", "ChatTemplate", "RemoteFault")
                    .contains(type.getSimpleName()));
    check(
        noClasses()
            .that(
                resideInAnyPackage(
                        "dev.gantry.core..",
                        "dev.gantry.formats..",
                        "dev.gantry.djl..",
                        "dev.gantry.models..",
                        "dev.gantry.s3..",
                        "dev.gantry.spark..",
                        "dev.gantry.langchain4j..")
                    .and(DescribedPredicate.not(files)))
            .should()
            .callMethodWhere(
                target(owner(resideInAPackage("java.time")))
                    .and(target(nameMatching("now|system|systemUTC|systemDefaultZone"))))
            .orShould()
            .callMethod(System.class, "currentTimeMillis"));
  }

  /// All files are written by one protocol, which survives a crash. The package `commit`
  /// implements it, with the file calls of the package `natives`.
  @Test
  void filesAreWrittenInOnePlace() {
    check(
        noClasses()
            .that(
                resideInAnyPackage(
                        "dev.gantry.core..",
                        "dev.gantry.formats..",
                        "dev.gantry.djl..",
                        "dev.gantry.models..",
                        "dev.gantry.spark..",
                        "dev.gantry.langchain4j..")
                    .and(resideOutsideOfPackages("dev.gantry.core.internal.commit", NATIVES)))
            .should()
            .callMethodWhere(
                target(owner(type(Files.class)))
                    .and(
                        target(
                            nameMatching(
                                "write.*|newOutputStream|newBufferedWriter|move|copy|create.*File"))))
            .orShould()
            .dependOnClassesThat(type(FileOutputStream.class).or(type(RandomAccessFile.class))));
  }

  /// Internal code reads through the session that its caller hands over, with that session's
  /// stores and pools. Only public convenience methods use the process's shared session.
  @Test
  void nothingInternalAsksForTheSharedSession() {
    check(
        noClasses()
            .that(
                resideInAnyPackage(
                        "dev.gantry.core..",
                        "dev.gantry.formats.internal..",
                        "dev.gantry.djl.internal..")
                    .and(resideOutsideOfPackages("dev.gantry.core", SESSION)))
            .should()
            .callMethod(GantrySession.class, "shared")
            .orShould()
            .callMethod(Session.class, "shared"));
  }

  /// Native calls block, and would pin the carrier thread of a virtual thread.
  @Test
  void threadsArePlatformThreads() {
    check(
        noClasses()
            .should()
            .callMethodWhere(
                target(
                    nameMatching("ofVirtual|startVirtualThread|newVirtualThreadPerTaskExecutor"))));
  }

  @Test
  void plannerIsPure() {
    check(
        classes()
            .that(resideInAPackage("dev.gantry.core.internal.plan.."))
            .should()
            .onlyDependOnClassesThat(
                resideInAPackage("java.lang..")
                    .or(resideInAPackage("java.util.."))
                    .or(type(Path.class))
                    .or(resideInAPackage("org.jspecify.."))
                    .or(resideInAPackage("dev.gantry.core"))
                    .or(type(Copy2D.class))
                    .or(resideInAPackage("dev.gantry.core.internal.plan.."))));
    check(
        noClasses()
            .that(resideInAPackage("dev.gantry.core.internal.plan.."))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage("java.lang.foreign..", "java.util.concurrent.."));
  }

  private static List<String> namesOf(Path sources) throws IOException {
    if (!Files.isDirectory(sources)) {
      return List.of();
    }
    try (Stream<Path> files = Files.walk(sources)) {
      return files
          .map(file -> sources.relativize(file).toString())
          .filter(name -> name.endsWith(".java") && !name.endsWith("-info.java"))
          .map(name -> name.substring(0, name.length() - ".java".length()).replace('/', '.'))
          .toList();
    }
  }
}
