"""Small exports: a track, a workout and places, with something broken in them."""

from __future__ import annotations

from sources.tests.specimens.files import Files
from sources.tests.specimens.fit import SETTINGS, SWIM

GPX = """<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="OpenTracks" xmlns="http://www.topografix.com/GPX/1/1"
 xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v1">
<metadata><time>2024-03-05T06:00:00Z</time></metadata>
<wpt lat="47.5" lon="8.7"><ele>440</ele><name>Spring</name><desc>Water &amp; shade</desc></wpt>
<wpt lat="somewhere" lon="8.7"><name>Nowhere</name></wpt>
<rte><name>Round the lake</name><rtept lat="47.0" lon="8.0"/><rtept lat="47.01" lon="8.0"/></rte>
<trk><name>Morning run</name><type>running</type>
<trkseg>
<trkpt lat="47.0" lon="8.0"><ele>400.5</ele><time>2024-03-05T07:00:00+01:00</time>
<extensions><gpxtpx:TrackPointExtension><gpxtpx:hr>120</gpxtpx:hr></gpxtpx:TrackPointExtension>\
</extensions></trkpt>
<trkpt lat="47.001" lon="8.0"><ele>401</ele><time>2024-03-05T06:01:00Z</time></trkpt>
</trkseg>
<trkseg>
<trkpt lat="47.1" lon="8.0"><time>2024-03-05T06:10:00Z</time></trkpt>
<trkpt lat="47.101" lon="8.0"><time>2024-03-05T06:11:00Z</time></trkpt>
</trkseg></trk>
<trk><name>Empty</name></trk>
</gpx>
"""
TCX = """          <?xml version="1.0" encoding="UTF-8"?>
<TrainingCenterDatabase xmlns="http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2">
<Activities><Activity Sport="Biking"><Id>2024-03-06T16:00:00.000Z</Id>
<Lap StartTime="2024-03-06T16:00:00Z"><TotalTimeSeconds>600.0</TotalTimeSeconds>
<DistanceMeters>3000.0</DistanceMeters><Calories>80</Calories>
<AverageHeartRateBpm><Value>131</Value></AverageHeartRateBpm>
<Track>
<Trackpoint><Time>2024-03-06T16:00:00Z</Time><Position><LatitudeDegrees>47.2</LatitudeDegrees>
<LongitudeDegrees>8.2</LongitudeDegrees></Position><AltitudeMeters>410</AltitudeMeters>
<DistanceMeters>0.0</DistanceMeters><HeartRateBpm><Value>130</Value></HeartRateBpm></Trackpoint>
<Trackpoint><Time>2024-03-06T16:10:00Z</Time><DistanceMeters>3000.0</DistanceMeters>
<HeartRateBpm><Value>132</Value></HeartRateBpm></Trackpoint>
</Track></Lap>
<Lap StartTime="2024-03-06T16:10:00Z"><TotalTimeSeconds>300.0</TotalTimeSeconds>
<DistanceMeters>1500.0</DistanceMeters><Calories>40</Calories></Lap>
</Activity></Activities></TrainingCenterDatabase>
"""
KML = """<?xml version="1.0" encoding="UTF-8"?>
<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"><Document>
<Placemark><name>Bakery</name><description><![CDATA[Best <b>bread</b>]]></description>
<Point><coordinates>8.5,47.4,410</coordinates></Point></Placemark>
<Placemark><name>Walk</name><LineString><coordinates>
8.50,47.40,0 8.51,47.40,0
</coordinates></LineString></Placemark>
<Placemark><name>Ride</name><gx:Track><when>2024-03-07T08:00:00Z</when>
<when>2024-03-07T08:30:00Z</when>
<gx:coord>8.5 47.4 410</gx:coord><gx:coord>8.6 47.4 412</gx:coord></gx:Track></Placemark>
<Placemark><name>Area</name></Placemark>
</Document></kml>
"""
FILES: Files = {
    "morning.gpx": GPX.encode(),
    "ride.tcx": TCX.encode(),
    "places.kml": KML.encode(),
    "swim.fit": SWIM,
    "settings.fit": SETTINGS,
}
