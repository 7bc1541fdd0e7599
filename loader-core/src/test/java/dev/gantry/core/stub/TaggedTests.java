package dev.gantry.core.stub;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectPackage;

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/// Runs the tests of a package that have one of some tags: on the stubs in the build, and on a GPU
/// host from the bundle. Arguments: the package, then the tags. Exit code 0 if any ran and none
/// failed.
public final class TaggedTests {
  private TaggedTests() {}

  public static void main(String[] arguments) {
    List<String> all = List.of(arguments);
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectPackage(all.getFirst()))
            .filters(TagFilter.includeTags(all.subList(1, all.size())))
            .build();
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create().execute(request, listener);
    TestExecutionSummary summary = listener.getSummary();
    summary.printFailuresTo(new PrintWriter(System.out, true, StandardCharsets.UTF_8), 30);
    System.out.printf(
        "tests %d, passed %d, failed %d, skipped %d%n",
        summary.getTestsFoundCount(),
        summary.getTestsSucceededCount(),
        summary.getTotalFailureCount(),
        summary.getTestsAbortedCount() + summary.getTestsSkippedCount());
    boolean good = summary.getTestsSucceededCount() > 0 && summary.getTotalFailureCount() == 0;
    System.exit(good ? 0 : 1);
  }
}
