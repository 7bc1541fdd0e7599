// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import dev.gantry.testing.stub.TaggedTests;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.platform.commons.support.ReflectionSupport;
import org.junit.platform.engine.TestExecutionResult.Status;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestPlan;
import org.opentest4j.TestAbortedException;

/// Runs the tests of a module that have a tag in a second JVM, while the first JVM runs the other
/// tests: Surefire cannot fork twice if Maven's own Java is older than the tests. A module with
/// such tests has a class `SecondJvmTest`, which extends this class, is ordered last and reports
/// how each test ended. If their packages are divided among several such classes, each has a JVM.
public abstract class SecondJvm {
  private static final Map<Class<?>, FutureTask<ChildJvm.Result>> RUNS = new ConcurrentHashMap<>();

  private final String packages;
  private final String tag;
  private final List<String> options;

  /// Runs the tests that have the tag `beside` and are not run by the first JVM.
  protected SecondJvm() {
    this("dev.gantry");
  }

  /// Runs the tests of some packages that have this tag.
  ///
  /// @param packages the packages, as [TaggedTests] takes them
  protected SecondJvm(String packages) {
    this(packages, "beside");
  }

  /// @param options options of the JVM, besides the size of its heap
  SecondJvm(String packages, String tag, String... options) {
    this.packages = packages;
    this.tag = tag;
    this.options = Stream.concat(Stream.of("-Xmx768m"), Stream.of(options)).toList();
  }

  /// Starts the second JVMs at the beginning of a run whose plan has subclasses. JUnit finds this
  /// class as a service.
  public static final class Starter implements TestExecutionListener {
    @Override
    public void testPlanExecutionStarted(TestPlan plan) {
      plan.getRoots().stream()
          .flatMap(root -> plan.getDescendants(root).stream())
          .flatMap(test -> test.getSource().stream())
          .filter(ClassSource.class::isInstance)
          .map(source -> ((ClassSource) source).getJavaClass())
          .filter(SecondJvm.class::isAssignableFrom)
          .forEach(type -> ((SecondJvm) ReflectionSupport.newInstance(type)).start());
    }
  }

  private void start() {
    FutureTask<ChildJvm.Result> run =
        new FutureTask<>(() -> ChildJvm.run(options, Map.of(), TaggedTests.class, packages, tag));
    if (RUNS.putIfAbsent(getClass(), run) == null) {
      Thread.ofPlatform().daemon().name(getClass().getSimpleName()).start(run);
    }
  }

  @TestFactory
  Stream<DynamicTest> testsOfTheSecondJvm() throws ExecutionException, InterruptedException {
    ChildJvm.Result result = Objects.requireNonNull(RUNS.get(getClass())).get();
    return Stream.concat(
        result.out().lines().filter(TaggedTests::isEnd).map(SecondJvm::test),
        Stream.of(DynamicTest.dynamicTest("the second JVM ended well", result::requirePassed)));
  }

  private static DynamicTest test(String line) {
    // The line has the form "ended: STATUS NAME".
    String[] words = line.split(" ", 3);
    Status status = Status.valueOf(words[1]);
    return DynamicTest.dynamicTest(
        words[2],
        () -> {
          switch (status) {
            case SUCCESSFUL -> {}
            case ABORTED -> throw new TestAbortedException(line);
            case FAILED -> throw new AssertionError(line);
          }
        });
  }
}
