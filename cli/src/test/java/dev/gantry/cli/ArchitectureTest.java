// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static com.tngtech.archunit.core.domain.JavaCall.Predicates.target;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackage;
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
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.core.importer.Location;
import com.tngtech.archunit.core.importer.Locations;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import dev.gantry.core.Session;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.Copy2D;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/// Checks which modules and packages may depend on which: models → loader-djl → formats →
/// loader-core, loader-spark → loader-djl, and langchain4j → models. Only a few packages use
/// native libraries, and the planner is pure.
///
/// The test lies in cli, because only cli has nearly all modules on its class path;
/// [#besideTheCommandLine] names the others.
class ArchitectureTest {
  private static final String NATIVES = "dev.gantry.core.internal.natives..";
  private static final String SESSION = "dev.gantry.core.internal.session";
  private static final String OF_DJL = "dev.gantry.djl.internal..";
  private static final String MAPPING = "dev.gantry.djl.internal.mapping";
  private static final String DIAGNOSIS = "dev.gantry.djl.internal.diagnosis";
  private static final String TORCH = "dev.gantry.djl.internal.torch";
  private static final String GUARD = "dev.gantry.djl.internal.ndarray";
  private static final String TFRECORD = "dev.gantry.formats.tfrecord";
  private static final String SOURCE = "dev.gantry.formats.internal.source";

  private static final String IMAGES = "dev.gantry.formats.internal.images";

  private static final String EXAMPLES = "dev.gantry.formats.internal.examples";

  /// The most files of an internal package. A reader can take in this many at a glance.
  private static final int MAX_FILES_OF_A_ROOM = 22;

  /// The most files of a public package. The types that users write lie in one package, so that
  /// users need not search for them.
  private static final int MAX_FILES_OF_THE_FACE = 29;

  private static final JavaClasses HOUSE =
      new ClassFileImporter()
          .withImportOption(new ImportOption.DoNotIncludeTests())
          .withImportOption(ArchitectureTest::isNotOfTesting)
          .importLocations(
              Stream.concat(Locations.ofPackage("dev.gantry").stream(), besideTheCommandLine())
                  .collect(Collectors.toSet()));

  /// The classes without the benchmarks. Benchmarks also call other libraries, the driver and the
  /// natives directly, to measure what lies below this library.
  private static final JavaClasses PRODUCT =
      HOUSE.that(
          DescribedPredicate.describe(
              "of the product", type -> !Module.BENCHMARKS.mayHold(type.getName())));

  /// Returns the class folders of the modules that use Spark or LangChain4j. The command line
  /// must build without these modules, so they are not on its class path.
  private static Stream<Location> besideTheCommandLine() {
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
                    name.contains(".internal") ? MAX_FILES_OF_A_ROOM : MAX_FILES_OF_THE_FACE));
  }

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

  /// The packages of formats, each with the other packages that it may depend on.
  static Stream<Arguments> formats() {
    String root = "dev.gantry.formats";
    String spi = root + ".spi";
    String internal = root + ".internal";
    String files = internal + ".files";
    String json = internal + ".json";
    String order = internal + ".order";
    String batches = internal + ".batches";
    String safetensors = internal + ".safetensors";
    String weights = internal + ".weights";
    String npy = internal + ".npy";
    String archive = internal + ".archive";
    String checkpoint = root + ".checkpoint";
    return Stream.of(
        Arguments.of(root, List.of()),
        Arguments.of(spi, List.of(root)),
        Arguments.of(files, List.of(spi)),
        Arguments.of(json, List.of(spi)),
        Arguments.of(order, List.of(root, spi)),
        Arguments.of(batches, List.of(root, spi, order)),
        Arguments.of(safetensors, List.of(spi, files, json)),
        Arguments.of(weights, List.of(spi, safetensors, files, json)),
        Arguments.of(npy, List.of(spi)),
        Arguments.of(SOURCE, List.of()),
        Arguments.of(archive, List.of(weights, spi, files)),
        Arguments.of(internal + ".numpy", List.of(weights, archive, spi, files, npy)),
        Arguments.of(internal + ".torch", List.of(weights, archive, safetensors, spi, files, json)),
        Arguments.of(internal + ".gguf", List.of(weights, spi, files, json)),
        Arguments.of(internal + ".quantised", List.of(weights, spi, json)),
        Arguments.of(checkpoint, List.of()),
        Arguments.of(internal + ".checkpoint", List.of(checkpoint, safetensors, spi, files, json)),
        Arguments.of(root + ".images", List.of(root, spi, IMAGES)),
        Arguments.of(IMAGES, List.of(spi)),
        Arguments.of(root + ".shards", List.of(root, spi, order, files, json)),
        Arguments.of(TFRECORD, List.of(batches, files, root, spi, SOURCE, root + ".images")),
        Arguments.of(root + ".webdataset", List.of(root, spi, root + ".images")),
        Arguments.of(
            internal + ".webdataset",
            List.of(
                root + ".webdataset",
                internal + ".index",
                SOURCE,
                npy,
                safetensors,
                order,
                files,
                spi,
                root)),
        Arguments.of(EXAMPLES, List.of(TFRECORD, batches, order, root, spi)),
        Arguments.of(
            internal + ".streams", List.of(EXAMPLES, TFRECORD, batches, order, files, root, spi)),
        Arguments.of(
            internal + ".index",
            List.of(EXAMPLES, TFRECORD, safetensors, batches, files, spi, root)));
  }

  @ParameterizedTest
  @MethodSource
  void formats(String of, List<String> known) {
    List<String> allowed = new ArrayList<>(known);
    allowed.add(of);
    check(
        noClasses()
            .that()
            .resideInAPackage(of)
            .should()
            .dependOnClassesThat(
                resideInAPackage("dev.gantry.formats..")
                    .and(resideOutsideOfPackages(allowed.toArray(String[]::new)))));
  }

  /// The code that weights, samples and checkpoints share lies in packages below them: files,
  /// JSON, safetensors as a container of tensors, and the interfaces for service providers.
  @Test
  void weightsSamplesAndCheckpointsDoNotKnowEachOther() {
    String root = "dev.gantry.formats.";
    List<List<String>> kinds =
        List.of(
            List.of(
                root + "internal.weights..",
                root + "internal.numpy..",
                root + "internal.torch..",
                root + "internal.gguf..",
                root + "internal.quantised.."),
            List.of(
                root + "shards..",
                root + "tfrecord..",
                root + "internal.order..",
                root + "internal.batches..",
                root + "internal.examples..",
                root + "internal.streams..",
                root + "internal.index..",
                root + "webdataset..",
                root + "internal.webdataset.."),
            List.of(root + "checkpoint..", root + "internal.checkpoint.."));
    for (List<String> kind : kinds) {
      String[] others =
          kinds.stream()
              .filter(other -> !other.equals(kind))
              .flatMap(List::stream)
              .toArray(String[]::new);
      check(
          noClasses()
              .that()
              .resideInAnyPackage(kind.toArray(String[]::new))
              .should()
              .dependOnClassesThat()
              .resideInAnyPackage(others));
    }
  }

  @Test
  void allPackagesOfFormatsHaveSuchARule() {
    Set<String> ruled =
        formats().map(arguments -> (String) arguments.get()[0]).collect(Collectors.toSet());
    Set<String> there =
        HOUSE.stream()
            .map(JavaClass::getPackageName)
            .filter(name -> name.startsWith(Module.FORMATS.root))
            .collect(Collectors.toSet());
    assertThat(there).isEqualTo(ruled);
  }

  /// Formats do not decide where bytes go, or by which transport.
  @Test
  void formatsKnowNoGpu() {
    check(
        noClasses()
            .that()
            .resideInAPackage("dev.gantry.formats..")
            .should()
            .dependOnClassesThat(
                type(CudaContext.class).or(type(DeviceSlab.class)).or(type(PinnedSlab.class))));
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

  @Test
  void roomsDoNotKnowTheSession() {
    check(
        noClasses()
            .that(resideInAPackage("dev.gantry.core..").and(resideOutsideOfPackage(SESSION)))
            .should()
            .dependOnClassesThat()
            .resideInAPackage(SESSION));
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

  /// ArchUnit also reports a rule that applies to no class. The first test ensures that no class
  /// was overlooked.
  private static void check(ArchRule rule) {
    check(rule, HOUSE);
  }

  private static void check(ArchRule rule, JavaClasses classes) {
    rule.check(classes);
  }

  private static boolean isNotOfTesting(Location location) {
    return !location.contains("/testing");
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
