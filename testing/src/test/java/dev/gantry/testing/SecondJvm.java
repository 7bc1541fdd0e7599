// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import dev.gantry.testing.stub.TaggedTests;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.platform.engine.TestExecutionResult.Status;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestPlan;
import org.opentest4j.TestAbortedException;

/// Runs the tests of a module that have the tag `beside` in a second JVM, while the first JVM runs
/// the other tests: Surefire cannot fork twice if Maven's own Java is older than the tests. A
/// module with such tests has a class `SecondJvmTest`, which extends this class, is ordered last
/// and reports how each test ended.
public abstract class SecondJvm {
  private static final FutureTask<ChildJvm.Result> RUN =
      new FutureTask<>(
          () -> ChildJvm.run("768m", Map.of(), TaggedTests.class, "dev.gantry", "beside"));

  /// Starts the second JVM at the beginning of a run that has a `SecondJvmTest`. JUnit finds this
  /// class as a service.
  public static final class Starter implements TestExecutionListener {
    @Override
    public void testPlanExecutionStarted(TestPlan plan) {
      boolean asked =
          plan.getRoots().stream()
              .flatMap(root -> plan.getDescendants(root).stream())
              .flatMap(test -> test.getSource().stream())
              .anyMatch(source ->
                  source instanceof ClassSource type
                      && SecondJvm.class.isAssignableFrom(type.getJavaClass()));
      if (asked) {
        Thread.ofPlatform().daemon().name("second-jvm").start(RUN);
      }
    }
  }

  @TestFactory
  Stream<DynamicTest> testsOfTheSecondJvm() throws ExecutionException, InterruptedException {
    ChildJvm.Result result = RUN.get();
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
