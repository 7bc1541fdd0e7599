// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.stub;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectPackage;

import dev.gantry.testing.ChildJvm;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.ClassNameFilter;
import org.junit.platform.engine.discovery.PackageNameFilter;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/// Runs the tests of packages that have one of some tags: on the stubs in the build, and from the
/// bundle on a GPU host. The arguments are the packages and then the tags; without tags all of
/// their tests run. Commas separate the packages, and a `-` stands before each that is left out:
/// `dev.gantry.core,-dev.gantry.core.internal`. The exit code is 0 if at least one test ran and
/// none failed.
public final class TaggedTests {
  /// The end of the totals line of a suite in which no test failed or was skipped.
  static final String ALL_RAN = "failed 0, skipped 0\n";

  private static final String ENDED = "ended: ";

  private static final int SHOWN_CHARACTERS = 400;

  private TaggedTests() {}

  /// Prints each class that begins and each failure at once, because a test may end the JVM.
  private static final class Announcement implements TestExecutionListener {
    @Override
    public void executionStarted(TestIdentifier test) {
      if (test.getSource().filter(ClassSource.class::isInstance).isPresent()) {
        System.out.println("-- " + test.getDisplayName());
      }
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
      result
          .getThrowable()
          .ifPresent(failure -> System.out.println("   " + test.getUniqueId() + ": " + failure));
      if (test.isTest()) {
        System.out.println(ENDED + result.getStatus() + " " + name(test));
      }
    }
  }

  /// Returns whether a line of the output reports the end of a test: `ended: STATUS NAME`.
  public static boolean isEnd(String line) {
    return line.startsWith(ENDED);
  }

  public static void main(String[] arguments) {
    List<String> all = List.of(arguments);
    LauncherDiscoveryRequestBuilder request =
        LauncherDiscoveryRequestBuilder.request()
            .filters(ClassNameFilter.excludeClassNamePatterns(".*JvmTest"));
    for (String name : all.getFirst().split(",", -1)) {
      if (name.startsWith("-")) {
        request.filters(PackageNameFilter.excludePackageNames(name.substring(1)));
      } else {
        request.selectors(selectPackage(name));
      }
    }
    if (all.size() > 1) {
      request.filters(TagFilter.includeTags(all.subList(1, all.size())));
    }
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create().execute(request.build(), listener, new Announcement());
    TestExecutionSummary summary = listener.getSummary();
    summary.printFailuresTo(new PrintWriter(System.out, true, StandardCharsets.UTF_8), 30);
    System.out.printf(
        "tests %d, passed %d, failed %d, skipped %d%n",
        summary.getTestsFoundCount(),
        summary.getTestsSucceededCount(),
        summary.getTotalFailureCount(),
        summary.getTestsAbortedCount() + summary.getTestsSkippedCount());
    summary.getFailures().forEach(failure -> System.out.println(line(failure)));
    boolean good = summary.getTestsSucceededCount() > 0 && summary.getTotalFailureCount() == 0;
    System.exit(good ? 0 : 1);
  }

  /// Formats a failure in one line, so that it fits among the last lines of a build.
  private static String line(TestExecutionSummary.Failure failure) {
    String reason = failure.getException().toString().strip().replaceAll("\\s+", " ");
    return ChildJvm.FAILED
        + name(failure.getTestIdentifier())
        + ": "
        + reason.substring(0, Math.min(SHOWN_CHARACTERS, reason.length()));
  }

  private static String name(TestIdentifier test) {
    return switch (test.getSource().orElse(null)) {
      case MethodSource method ->
          (method.getJavaClass().getSimpleName()
                  + "."
                  + method.getMethodName()
                  + " "
                  + test.getDisplayName().replace(method.getMethodName() + "()", ""))
              .strip();
      case ClassSource type -> type.getJavaClass().getSimpleName();
      case null, default -> test.getUniqueId();
    };
  }
}
