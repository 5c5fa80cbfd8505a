"""A small export: Apple Health of an iPhone, with something broken in it.

The document type is Apple's, shortened, with the element that iOS 16 spelled wrong in it.
"""

from __future__ import annotations

from sources.tests.specimens.files import Files

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE HealthData [
<!-- HealthKit Export Version: 13 -->
<!ELEMENT HealthData (ExportDate,Me,(Record|Correlation|Workout|ActivitySummary)*)>
<!ATTLIST HealthData
  locale CDATA #REQUIRED
>
<!ELEMENT Record ((MetadataEntry|HeartRateVariabilityMetadataList)*)>
<!ATTLIST Record
  type CDATA #REQUIRED
  value CDATA #IMPLIED
  device CDATA #IMPLIED
startDate CDATA #REQUIRED
>
<!ENTITY lol "lol">
]>
<HealthData locale="en_US">
 <ExportDate value="2024-03-05 10:36:11 +0100"/>
 <Me HKCharacteristicTypeIdentifierDateOfBirth="1990-02-02"/>
"""
SPAN = 'creationDate="2024-03-04 08:00:01 +0100" startDate="2024-03-04 08:00:00 +0100"'
HEART = "HKQuantityTypeIdentifierHeartRate"
SLEEP = "HKCategoryTypeIdentifierSleepAnalysis"


def heart_rate(value: str, second: int = 0) -> str:
    """A measurement as a watch makes one every few seconds."""
    start = f"2024-03-04 08:{second // 60 % 60:02}:{second % 60:02} +0100"
    return (
        f' <Record type="{HEART}" sourceName="Ada\u2019s Watch" sourceVersion="10"'
        ' device="&lt;&lt;HKDevice: 0x28&gt;, name:Watch&gt;" unit="count/min"'
        f' creationDate="{start}" startDate="{start}" endDate="{start}" value="{value}">\n'
        '  <MetadataEntry key="HKMetadataKeyHeartRateMotionContext" value="0"/>\n </Record>\n'
    )


PRESSURE = "".join(
    f'  <Record type="HKQuantityTypeIdentifierBloodPressure{name}" sourceName="Cuff" unit="mmHg"'
    f' {SPAN} endDate="2024-03-04 08:00:00 +0100" value="{value}"/>\n'
    for name, value in (("Systolic", 121), ("Diastolic", 79))
)
BODY = (
    heart_rate("61")
    + heart_rate("62", 5)
    + heart_rate("62", 5)
    + f' <Record type="HKQuantityTypeIdentifierBodyMass" sourceName="Scale" unit="kg" {SPAN}'
    ' value="\x0b70.5"/>\n'
    + f' <Record type="{SLEEP}" sourceName="Watch" startDate="2024-03-03 23:10:00 +0100"'
    ' endDate="2024-03-04 00:40:00 +0100" value="HKCategoryValueSleepAnalysisAsleepCore"/>\n'
    + PRESSURE
    + f' <Correlation type="HKCorrelationTypeIdentifierBloodPressure" sourceName="Cuff" {SPAN}'
    ' endDate="2024-03-04 08:00:00 +0100">\n'
    + PRESSURE
    + " </Correlation>\n"
    + f' <Record type="{HEART}" unit="count/min" startDate="yesterday" value="1"/>\n'
    + f' <Record type="{HEART}" unit="count/min" {SPAN} value="broken>\n'
    + f' <Record type="{HEART}" unit="count/min" {SPAN} value="never closed">\n'
    + heart_rate("63", 10)
)
WORKOUTS = """\
 <Workout workoutActivityType="HKWorkoutActivityTypeRunning" duration="31.5" durationUnit="min"
  sourceName="Watch" startDate="2024-03-04 18:00:00 +0100" endDate="2024-03-04 18:31:30 +0100">
  <WorkoutEvent type="HKWorkoutEventTypePause" date="2024-03-04 18:10:00 +0100"/>
  <WorkoutStatistics type="HKQuantityTypeIdentifierHeartRate" average="141" unit="count/min"/>
  <WorkoutStatistics type="HKQuantityTypeIdentifierDistanceWalkingRunning" sum="5.1" unit="km"/>
  <WorkoutStatistics type="HKQuantityTypeIdentifierActiveEnergyBurned" sum="320" unit="kcal"/>
  <WorkoutRoute><FileReference path="/workout-routes/route_1.gpx"/></WorkoutRoute>
 </Workout>
 <Workout workoutActivityType="HKWorkoutActivityTypeYoga" duration="0.5" durationUnit="hr"
  totalDistance="1" totalDistanceUnit="mi" totalEnergyBurned="418.4" totalEnergyBurnedUnit="kJ"
  startDate="2016-11-14 07:25:41 -0700" endDate="2016-11-14 07:55:41 -0700"/>
 <ActivitySummary dateComponents="2024-03-04" activeEnergyBurned="590.5"
  activeEnergyBurnedGoal="630" activeEnergyBurnedUnit="kcal" appleMoveTime="0"
  appleExerciseTime="68" appleExerciseTimeGoal="30" appleStandHours="13" appleStandHoursGoal="12"/>
 <ClinicalRecord type="AllergyRecord" identifier="1" sourceName="Clinic"/>
"""
ROUTE = """<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="Apple Health Export" xmlns="http://www.topografix.com/GPX/1/1">
  <metadata><time>2024-03-04T20:00:00Z</time></metadata>
  <trk><name>Route 2024-03-04 6:00pm</name><trkseg>
      <trkpt lon="13.404954" lat="52.520008"><ele>34.5</ele><time>2024-03-04T17:00:01Z</time>\
<extensions><speed>2.71</speed><course>206.2</course></extensions></trkpt>
      <trkpt lon="13.404955" lat="52.520009"><ele>35</ele><time>2024-03-04T17:00:02Z</time></trkpt>
      <trkpt lon="13.404955"><ele>34.6</ele><time>2024-03-04T17:00:03Z</time></trkpt>
  </trkseg></trk>
</gpx>
"""

FILES: Files = {
    "apple_health_export/Export.xml": (HEAD + BODY + WORKOUTS + "</HealthData>\n").encode(),
    "apple_health_export/export_cda.xml": b'<?xml version="1.0"?>\n<ClinicalDocument/>\n',
    "apple_health_export/workout-routes/route_1.gpx": ROUTE.encode(),
    "apple_health_export/electrocardiograms/ecg_2024-03-04.csv": b"Name,Ada\nRecorded Date,x\n",
}
